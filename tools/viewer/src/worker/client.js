// Gives work to workers that run this page's own code from a Blob.
import source from 'worker-source';

let next = 0;

/// A worker with a method for each task.
export class Worker {
  constructor() {
    const address = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    this.worker = new window.Worker(address);
    this.waiting = new Map();
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      for (const { reject } of this.waiting.values()) reject(new Error('The worker failed.'));
      this.waiting.clear();
    };
  }

  receive(data) {
    const task = this.waiting.get(data.id);
    if (!task) return;
    if (data.progress) {
      task.progress(data.progress);
      return;
    }
    this.waiting.delete(data.id);
    if (data.error !== undefined) task.reject(new Error(data.error));
    else task.resolve(data.result);
  }

  run(task, data, progress = () => {}) {
    return new Promise((resolve, reject) => {
      const id = ++next;
      this.waiting.set(id, { resolve, reject, progress });
      this.worker.postMessage({ id, task, ...data });
    });
  }

  stop() {
    this.worker.terminate();
  }
}
