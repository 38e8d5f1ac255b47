// A page that is opened as a file may not start a worker, so its search would not work: a hidden frame takes the worker's place.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      const load = address => new Promise((resolve, reject) => {
        const script = inside.document.createElement("script")
        script.src = address
        script.onload = resolve
        script.onerror = reject
        inside.document.body.appendChild(script)
      })
      inside.importScripts = (...addresses) => addresses.reduce((done, one) => done.then(() => load(one)), Promise.resolve())
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = load(new URL(url, location.href).href)
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
