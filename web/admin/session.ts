import { allowsScope, type AdminScope } from '../../shared/contract/admin-terms.ts';
import type { components } from '../generated/api.d.ts';
import { ApiError } from '../lib/api-error.ts';
import { fetchOrThrow } from '../lib/fetch-or-throw.ts';
import { keep, readKept } from '../lib/kept.ts';
import { createStore, useStore } from '../lib/store.ts';

export type AdminSession = components['schemas']['AdminSession'];

/** `unknown`: the server is being asked. `ended`: while the console was in use, so that its page can go on afterwards. */
export interface ConsoleSession {
  readonly status: 'unknown' | 'none' | 'active' | 'ended';
  /** The last one; null if there was none. */
  readonly session: AdminSession | null;
}

type Notice = 'started' | 'ended';

const path = '/v1/admin/session';
/** Pages cannot read the cookie, so this says whether to expect one. */
const untilName = 'admin-until';

const store = createStore<ConsoleSession>({ status: 'unknown', session: null });
const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('mg-admin') : null;

export const useConsoleSession = (): ConsoleSession => useStore(store);
export const readConsoleSession = (): ConsoleSession => store.get();

/** Whether the token may do what needs this scope. What it may not is not offered. */
export function useMay(needed: AdminScope): boolean {
  const { session } = useConsoleSession();
  return session !== null && allowsScope(session.scope, needed);
}

function take(session: AdminSession): void {
  keep(untilName, session.expires_at);
  store.set({ status: 'active', session });
}

/** @param token of the admin API; it is not kept. @throws ApiError */
export async function signIn(token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  take(await read(await fetchOrThrow(path, { method: 'POST', headers })));
  tellOthers('started');
}

/** @throws ApiError */
export async function signOut(): Promise<void> {
  const csrfToken = store.get().session?.csrf_token ?? '';
  const response = await fetchOrThrow(path, { method: 'DELETE', headers: { 'x-csrf-token': csrfToken } });
  // It may have ended meanwhile.
  if (!response.ok && response.status !== 401) await read(response);
  forget();
  tellOthers('ended');
}

/** Notes that a call found no session. What is shown stays. */
export function noteEnded(): void {
  keep(untilName, null);
  const { session } = store.get();
  store.set(session === null ? { status: 'none', session } : { status: 'ended', session });
}

/** Reads the session again, such as after another tab has replaced it. Returns false without one. @throws ApiError */
export async function reloadSession(): Promise<boolean> {
  const response = await fetchOrThrow(path);
  if (response.status === 401 || response.status === 404) {
    noteEnded();
    return false;
  }
  take(await read(response));
  return true;
}

function forget(): void {
  keep(untilName, null);
  store.set({ status: 'none', session: null });
}

async function read(response: Response): Promise<AdminSession> {
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw ApiError.ofResponse(response, body);
  return body as AdminSession;
}

const tellOthers = (notice: Notice): void => channel?.postMessage(notice);

/** Asks for the session only if there may be one: a call without it is an error on the console. */
export async function startConsoleSession(): Promise<void> {
  const isExpected = Date.parse(readKept(untilName) ?? '') > Date.now();
  if (!isExpected) {
    forget();
    return;
  }
  try {
    await reloadSession();
  } catch {
    // Without a connection, it is not known whether there is one.
    store.set({ status: 'none', session: null });
  }
}

channel?.addEventListener('message', ({ data }: MessageEvent<Notice>) => {
  if (data === 'ended') forget();
  // Another token may have another scope.
  else reloadSession().catch(noteEnded);
});
