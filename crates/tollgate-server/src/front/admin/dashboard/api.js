// Calls of the admin API, with a token that stays in this tab.

const TOKEN = "tollgate.token";

/** The error of a failed call, with the node's message. */
export class CallError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(TOKEN);
export const setToken = (value) => sessionStorage.setItem(TOKEN, value);
export const forgetToken = () => sessionStorage.removeItem(TOKEN);

async function send(method, path, body, signal) {
  const headers = { Authorization: `Bearer ${token() ?? ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method, headers, signal, cache: "no-store", credentials: "omit" };
  if (body !== undefined) options.body = JSON.stringify(body);
  const response = await fetch(path, options);
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new CallError(response.status, problem.detail ?? `the node answered ${response.status}`);
  }
  return response;
}

/** Makes a call, and parses the answer as JSON. */
export async function call(method, path, body) {
  return (await send(method, path, body)).json();
}

/**
 * Reads server-sent events until the stream ends. `EventSource` cannot send a token, so this reads
 * the body itself.
 */
export async function events(path, see, signal) {
  const response = await send("GET", path, undefined, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const field = (name) => part.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field("data");
      if (data !== undefined) see(field("event"), JSON.parse(data));
    }
  }
}
