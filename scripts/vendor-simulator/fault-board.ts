import { type Faults, findUnknownFaultWords, parseFaultWords } from './faults.ts';
import { isRecord } from '../../shared/encoding/json-record.ts';

/** The calls that a fault applies to: all, those for a model, or those with a key. */
export interface FaultScope {
  readonly model?: string | undefined;
  readonly key?: string | undefined;
}

/** Faults that apply until they are changed and can be set from outside the process. */
export interface FaultBoard {
  /** Replaces the faults of that scope. No faults clears it. */
  set(faults: Faults, scope?: FaultScope): void;
  /** Returns all faults of a call. Narrower scopes override wider ones; a key is narrower than a model. */
  find(model: string, key: string | null): Faults;
  /** Handles `GET`, `POST` and `DELETE` of `/faults`. */
  handle(method: string, body: Readonly<Record<string, unknown>> | null): FaultBoardResponse;
}

export interface FaultBoardResponse {
  readonly status: number;
  readonly body: object;
}

const FIELDS = new Set(['words', 'model', 'key']);

export function createFaultBoard(initial: Faults): FaultBoard {
  let common = initial;
  const byModel = new Map<string, Faults>();
  const byKey = new Map<string, Faults>();

  const describe = (): object => ({
    all: common,
    models: Object.fromEntries(byModel),
    keys: Object.fromEntries(byKey),
  });

  function set(faults: Faults, { model, key }: FaultScope = {}): void {
    if (model === undefined && key === undefined) {
      common = faults;
    }
    if (model !== undefined) {
      setIn(byModel, model, faults);
    }
    if (key !== undefined) {
      setIn(byKey, key, faults);
    }
  }

  return {
    set,
    find: (model, key) => ({ ...common, ...byModel.get(model), ...byKey.get(key ?? '') }),

    handle(method, body) {
      if (method === 'DELETE') {
        set({});
        byModel.clear();
        byKey.clear();
      } else if (method === 'POST') {
        const problem = checkRequest(body);
        if (problem !== null) {
          return { status: 400, body: { error: problem } };
        }
        const { words, model, key } = body as { words: string; model?: string; key?: string };
        set(parseFaultWords(words), { model, key });
      } else if (method !== 'GET') {
        return { status: 405, body: { error: 'Only GET, POST and DELETE are supported.' } };
      }
      return { status: 200, body: describe() };
    },
  };
}

function setIn(map: Map<string, Faults>, name: string, faults: Faults): void {
  if (Object.keys(faults).length > 0) {
    map.set(name, faults);
  } else {
    map.delete(name);
  }
}

/** Returns what is wrong with a request to set faults, or null. */
function checkRequest(body: unknown): string | null {
  if (!isRecord(body) || typeof body['words'] !== 'string') {
    return 'Send {"words": "fail-500+slow-300"}, and add "model" or "key" for one model or key.';
  }
  const unknown = Object.keys(body).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) {
    return `Unknown field "${unknown}". Known fields: words, model, key.`;
  }
  if ('model' in body && 'key' in body) {
    return 'Specify model or key, not both. Send two requests.';
  }
  const notText = ['model', 'key'].find((name) => name in body && typeof body[name] !== 'string');
  if (notText !== undefined) {
    return `"${notText}" must be a string.`;
  }
  const [word] = findUnknownFaultWords(body['words']);
  return word === undefined
    ? null
    : `"${word}" is not a fault, or its number is missing. npm run -s simulate-vendor -- --help lists all faults.`;
}
