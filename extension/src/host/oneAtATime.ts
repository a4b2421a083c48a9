/** Runs a job so that at most one is under way and at most one more is waiting; further calls join the waiting one. */
export class OneAtATime {
  private running: Promise<void> | undefined;
  private queued: Promise<void> | undefined;

  constructor(private readonly job: () => Promise<void>) {}

  request(): Promise<void> {
    if (this.running === undefined) {
      return this.begin();
    }
    this.queued ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.queued = undefined;
        return this.begin();
      });
    return this.queued;
  }

  /** Settles when nothing runs and nothing waits. */
  async idle(): Promise<void> {
    while (this.running !== undefined || this.queued !== undefined) {
      await (this.queued ?? this.running)?.catch(() => undefined);
    }
  }

  private begin(): Promise<void> {
    const running = this.job().finally(() => {
      if (this.running === running) {
        this.running = undefined;
      }
    });
    this.running = running;
    return running;
  }
}
