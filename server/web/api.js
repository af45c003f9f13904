// Requests to the server of this page, with the API key if it needs one.

const kStorage = "toto-key";
let key = "";
try {
  key = sessionStorage.getItem(kStorage) || "";
} catch {
  // Without storage the page asks for the key again after a reload.
}
let askForKey = async () => null;

// `ask(sentence)` resolves to a key, or to null if the user cancels.
export function onKeyNeeded(ask) {
  askForKey = ask;
}

export function setKey(text) {
  key = text;
  try {
    sessionStorage.setItem(kStorage, key);
  } catch {
    // See above.
  }
}

// The server's error message, or one about not reaching it.
export class ServerError extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

async function sentenceOf(answer) {
  try {
    return (await answer.json()).error || `the server answered ${answer.status}`;
  } catch {
    return `the server answered ${answer.status} ${answer.statusText}`;
  }
}

let asking = null; // one dialog for all requests that wait for a key

// The response, or a ServerError. `body` is sent as JSON.
export async function request(path, {body, signal} = {}) {
  const options = {signal, headers: {}};
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  for (;;) {
    const sent = key;
    if (key) options.headers.Authorization = `Bearer ${key}`;
    let answer;
    try {
      answer = await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServerError("the server cannot be reached; is it still running?", 0);
    }
    if (answer.ok) return answer;
    const sentence = await sentenceOf(answer);
    if (answer.status !== 401) throw new ServerError(sentence, answer.status);
    if (sent !== key) continue; // another request has set a key meanwhile
    asking ||= askForKey(sentence).finally(() => {
      asking = null;
    });
    const given = await asking;
    if (given === null) throw new ServerError(sentence, 401);
    setKey(given);
  }
}

export const getJson = async (path, options) => (await request(path, options)).json();
export const getText = async (path, options) => (await request(path, options)).text();
