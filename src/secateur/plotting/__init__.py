"""Draw paths, trees and features with matplotlib, and show them in notebooks."""
