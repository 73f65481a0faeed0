// Search without a server: browsers start no Worker for a page opened from a folder, so a hidden frame runs its script.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = `<script>
        self.postMessage = (message) => parent.postMessage(message, "*");
        self.importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((loaded) => {
          const element = document.createElement("script");
          element.src = url;
          element.onload = loaded;
          document.head.appendChild(element);
        })));
      <\/script><script src="${script}"><\/script>`;
      this.frame.onload = () => {
        this.ready = true;
        this.waiting.splice(0).forEach((message) => this.postMessage(message));
      };
      addEventListener("message", (event) => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      document.body.appendChild(this.frame);
    }
    postMessage(message) {
      if (this.ready)
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: message }));
      else this.waiting.push(message);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
