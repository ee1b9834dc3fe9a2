// The server's interface, /api/v1; docs/API.md describes it.

export interface Wdl { win: number; draw: number; loss: number }  // White's view.
export interface MoveText { uci: string; san?: string }
export interface Candidate extends MoveText { probability: number; visits?: number; wdl?: Wdl }
export interface Position {
  start: string; fen: string; turn: "white" | "black";
  moves: { uci: string; san: string; fen: string; check: boolean }[];
  legal: { uci: string; san: string }[];
  check: string | null; ending: string; result: string;
}
export interface Model {
  id: string; kind: "decoder" | "policy" | "lc0" | "2048" | ""; bytes: number; parameters: number; changed: number;
  ratings: { anchor: string; points: { temperature: number; elo: number }[] } | null;
  run?: string; problem?: string; card?: string; config?: unknown;
}
export interface PlayerText { name: string; kind: string; title: string }

export class ApiError extends Error {
  constructor(message: string, readonly hint: string, readonly status: number) { super(message); }
}

async function failure(response: Response): Promise<ApiError> {
  const body = await response.json().catch(() => null);
  return new ApiError(body?.error?.message ?? `the server answered ${response.status}`, body?.error?.hint ?? "",
    response.status);
}

function offline(error: unknown): never {
  if (error instanceof ApiError || (error as Error).name === "AbortError") throw error;
  throw new ApiError("the server does not answer", "is 'kibitz serve' still running?", 0);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(`/api/v1/${path}`, { signal }).catch(offline);
  if (!response.ok) throw await failure(response);
  return response.json() as Promise<T>;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const response = await send(path, body, signal);
  return response.json() as Promise<T>;
}

async function send(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(`/api/v1/${path}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  }).catch(offline);
  if (!response.ok) throw await failure(response);
  return response;
}

export async function remove(path: string): Promise<void> {
  await fetch(`/api/v1/${path}`, { method: "DELETE" });
}

export interface ServerEvent { event: string; data: any }

// A stream of server-sent events that begins with a POST. Leaving the loop, or aborting, ends the job.
export async function* stream(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  yield* eventsOf(await send(path, body, signal));
}

// The events of a job that runs already, from its first on.
export async function* follow(job: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const response = await fetch(`/api/v1/jobs/${encodeURIComponent(job)}/events`, { signal }).catch(offline);
  if (!response.ok) throw await failure(response);
  yield* eventsOf(response);
}

async function* eventsOf(response: Response): AsyncGenerator<ServerEvent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  let ended = false;  // Every job says so; a stream that just stops was cut.
  try {
    for (;;) {
      const { value, done } = await reader.read().catch(offline);
      if (done && !ended) offline(new Error("cut"));
      if (done) return;
      buffer += value;
      for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
        const lines = buffer.slice(0, end).split("\n");
        buffer = buffer.slice(end + 2);
        const event = lines.find((line) => line.startsWith("event: "))?.slice(7);
        if (!event) continue;
        const text = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
        ended ||= event === "end";
        yield { event, data: JSON.parse(text) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
