/** The page's way to its server: a session for the token, requests, and news. */

import type { RunItem, RunTree, StageItem } from "../protocol";
import type { Subject } from "./address";

/** The token is missing or old: only the command that prints the address helps. */
export class NoSession extends Error {}

export type News =
  | { type: "changed"; run: string; running: boolean }
  /** `irscope view --open` of another terminal, or of an editor. */
  | { type: "open"; subject: Subject };

/** Gives the token for a cookie. @throws NoSession */
export async function startSession(token: string): Promise<void> {
  const answer = await post("/session", { token });
  if (!answer.ok) {
    throw new NoSession(await answer.text());
  }
}

/** Sends a request of docs/PROTOCOL.md, or one of the page's own. Rejects with a message for the user. */
export async function request<Result>(method: string, params: object): Promise<Result> {
  let answer: Response;
  try {
    answer = await post("/request", { method, params });
  } catch {
    throw new Error("The server does not answer; start `irscope view` again.");
  }
  if (answer.status === 401) {
    throw new NoSession(await answer.text());
  }
  if (!answer.ok) {
    throw new Error(await answer.text());
  }
  const { result, error } = (await answer.json()) as { result?: Result; error?: string };
  if (error !== undefined) {
    throw new Error(error);
  }
  return result as Result;
}

function post(path: string, body: object): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  return fetch(path, { method: "POST", credentials: "same-origin", headers, body: JSON.stringify(body) });
}

/**
 * Listens as long as the page is seen: browsers give an address six connections, and each page that listens takes one.
 * @param tell what is new @param state whether the server is there
 */
export function listen(tell: (news: News) => void, state: (connected: boolean) => void): void {
  let source: EventSource | undefined;
  const follow = (): void => {
    if (document.visibilityState === "hidden") {
      source?.close();
      source = undefined;
    } else if (source === undefined) {
      source = new EventSource("/events");
      source.onopen = () => state(true);
      source.onerror = () => state(false);
      source.onmessage = ({ data }: MessageEvent<string>) => tell(JSON.parse(data) as News);
    }
  };
  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", () => source?.close());
  follow();
}

const reports = new Map<string, Promise<RunTree>>();

export async function runs(): Promise<RunItem[]> {
  return (await request<{ runs: RunItem[] }>("irscope/runs", { limit: 200 })).runs;
}

/** One run with its compiles and stages; kept once the run has ended. */
export function report(run: string): Promise<RunTree> {
  const known = reports.get(run);
  if (known !== undefined) {
    return known;
  }
  const asked = request<RunTree>("irscope/report", { run });
  reports.set(run, asked);
  asked.then(
    ({ item }) => item.outcome === null && reports.delete(run),
    () => reports.delete(run),
  );
  return asked;
}

/** What is below a kernel: Triton's stages, its assembly; also what is made on opening. */
export async function below({ run, stage }: { run: string; stage: string }): Promise<StageItem[]> {
  return (await request<{ stages: StageItem[] }>("view/below", { run, stage })).stages;
}

export function forgetReport(run: string): void {
  reports.delete(run);
}
