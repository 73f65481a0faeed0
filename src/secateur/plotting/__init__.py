"""Plot trade-off curves, trees and features with matplotlib, and render paths as HTML in notebooks."""
