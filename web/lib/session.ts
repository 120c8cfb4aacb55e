import type { components } from '../generated/api.d.ts';
import { ApiError } from './api-error.ts';
import { fetchOrThrow } from './fetch-or-throw.ts';
import { keep, readKept } from './kept.ts';
import { sessionHint } from './page-facts.ts';
import { createStore, useStore } from './store.ts';

export type WebUser = components['schemas']['WebUser'];
type AuthResult = components['schemas']['AuthResult'];

export interface Session {
  /** `expired`: a refresh is necessary before the next call. */
  readonly status: 'none' | 'active' | 'expired';
  /** Null until it is known. */
  readonly user: WebUser | null;
  readonly csrfToken: string | null;
}

type Notice =
  | { readonly kind: 'signed-in' | 'refreshed'; readonly userId: string; readonly csrfToken: string }
  | { readonly kind: 'signed-out'; readonly end: SessionEnd };

/** `chosen`: the user has signed out. Otherwise the session has expired, or was ended elsewhere. */
export type SessionEnd = 'chosen' | 'found';

const none: Session = { status: 'none', user: null, csrfToken: null };

/** A session's cookie lasts 15 minutes. */
const freshMs = 14 * 60_000;
/** How long a refresh of a page that was left may take. */
const maxRefreshMs = 10_000;
const pollMs = 400;

const authPath = '/v1/web/auth';
const refreshLock = 'mg-refresh';
const store = createStore<Session>({ ...none, status: sessionHint });
const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('mg-session') : null;
const endListeners = new Set<(end: SessionEnd) => void>();

export const readSession = (): Session => store.get();
export const useSession = (): Session => useStore(store);

/** Calls the listener when the session ends, here or in another tab. */
export function onSessionEnd(listener: (end: SessionEnd) => void): () => void {
  endListeners.add(listener);
  return () => endListeners.delete(listener);
}

/** Returns 0 for a time that is yet to come: the clock was wrong then. */
function readTime(name: string): number {
  const time = Number(readKept(name) ?? 0);
  return time > Date.now() ? 0 : time;
}

function tellOthers(notice: Notice): void {
  channel?.postMessage(notice);
}

/** Also tells pages that the browser keeps to go back to, which hear nothing meanwhile. */
function setUser(user: WebUser, csrfToken: string | null): void {
  keep('user', user.id);
  store.set({ status: 'active', user, csrfToken });
}

function take({ user, csrf_token: csrfToken }: AuthResult): void {
  keep('refreshed-at', String(Date.now()));
  setUser(user, csrfToken);
}

/** Begins the session that a sign-in returned. */
export function beginSession(result: AuthResult): void {
  take(result);
  tellOthers({ kind: 'signed-in', userId: result.user.id, csrfToken: result.csrf_token });
}

function endHere(end: SessionEnd): void {
  keep('user', null);
  if (store.get().status === 'none') return;
  store.set(none);
  for (const listener of endListeners) listener(end);
}

function endEverywhere(end: SessionEnd): void {
  tellOthers({ kind: 'signed-out', end });
  endHere(end);
}

/** Replaces what is known of the user, such as after a change of the time zone. */
export function updateUser(user: WebUser): void {
  store.set({ ...store.get(), user });
}

/**
 * Signs out here and in all other tabs.
 * @param leave goes to a page for visitors: called once the session has ended, and before this page knows
 * @throws ApiError
 */
export async function signOut(leave: () => void): Promise<void> {
  await readCsrfToken();
  // A refresh that is under way would bring cookies after this call has deleted them.
  const response = await inLock(refreshLock, async () => {
    // The refresh of another tab has changed the token.
    await loadUser();
    const { csrfToken } = store.get();
    const headers: HeadersInit = csrfToken === null ? {} : { 'x-csrf-token': csrfToken };
    return await fetchOrThrow(`${authPath}/logout`, { method: 'POST', headers });
  });
  // The session may have ended meanwhile.
  if (!response.ok && response.status !== 401) throw await readError(response);
  leave();
  endEverywhere('chosen');
}

const readError = async (response: Response): Promise<ApiError> =>
  ApiError.ofResponse(response, await response.json().catch(() => null));

const inTab = new Map<string, Promise<unknown>>();

/** Runs one such work at a time, over all tabs. Browsers offer locks only to pages with https or on this machine. */
async function inLock<T>(name: string, work: () => Promise<T>): Promise<T> {
  if ('locks' in navigator) return await navigator.locks.request(name, work);
  const next = (inTab.get(name) ?? Promise.resolve()).then(work, work);
  inTab.set(name, next);
  return await next;
}

/**
 * Refreshes the session, unless another call or tab has done so meanwhile. A refresh token works once, so all tabs
 * take turns.
 * @param sentAtMs when the call or page was requested that found the session expired
 * @returns whether there is a session
 * @throws ApiError if the server could not be asked
 */
export async function refreshSession(sentAtMs = Date.now()): Promise<boolean> {
  return await inLock(refreshLock, async () => {
    if (readTime('refreshed-at') > sentAtMs) return await loadUser();
    if (await hasUnfinishedRefresh()) return true;
    keep('refreshing-at', String(Date.now()));
    try {
      // The cookies of the response count even if this page is left while it is on its way.
      const response = await fetchOrThrow(`${authPath}/refresh`, { method: 'POST', keepalive: true });
      if (response.status === 401 || response.status === 403) {
        endEverywhere('found');
        return false;
      }
      if (!response.ok) throw await readError(response);
      const result = (await response.json()) as AuthResult;
      take(result);
      tellOthers({ kind: 'refreshed', userId: result.user.id, csrfToken: result.csrf_token });
      return true;
    } finally {
      keep('refreshing-at', null);
    }
  });
}

/** Waits for the refresh of a page that was left before its response came. Another one would end the session. */
async function hasUnfinishedRefresh(): Promise<boolean> {
  const beganAtMs = readTime('refreshing-at');
  while (Date.now() - beganAtMs < maxRefreshMs) {
    if (await loadUser()) return true;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return false;
}

/** Reads the user of the session. Returns false if the session has expired. @throws ApiError */
async function loadUser(): Promise<boolean> {
  const response = await fetchOrThrow(`${authPath}/me`);
  if (response.status === 401) return false;
  if (!response.ok) throw await readError(response);
  const me = (await response.json()) as WebUser;
  const csrfToken = 'csrf_token' in me ? String(me.csrf_token) : store.get().csrfToken;
  setUser(me, csrfToken);
  return true;
}

/** Whether the session's cookie is about to expire, as far as this browser knows. */
function isOld(): boolean {
  const refreshedAtMs = readTime('refreshed-at');
  return refreshedAtMs > 0 && Date.now() - refreshedAtMs > freshMs;
}

/** Refreshes the session before a call that would fail without. */
export async function freshenSession(): Promise<void> {
  const { status } = store.get();
  // The cookie was missing when this page was requested. Another tab may have refreshed the session since.
  if (status === 'expired') await refreshSession(performance.timeOrigin);
  else if (status === 'active' && isOld()) await refreshSession();
}

/** Returns the token for calls that change something; null without a session. */
export async function readCsrfToken(): Promise<string | null> {
  await started;
  const { status, csrfToken } = store.get();
  if (status === 'none' || csrfToken !== null) return csrfToken;
  await refreshSession();
  return store.get().csrfToken;
}

async function start(): Promise<void> {
  if (sessionHint === 'none') {
    keep('user', null);
    return;
  }
  try {
    const sentAtMs = Date.now();
    await freshenSession();
    if (store.get().user === null && store.get().status !== 'none' && !(await loadUser()))
      await refreshSession(sentAtMs);
  } catch {
    // Without a connection, the user stays unknown until a call succeeds.
  }
}

/** Settled when the user is known, or that there is none. */
const started = start();

/** Shows nothing of a user who is no longer here. */
function loadAnew(): void {
  document.documentElement.style.display = 'none';
  location.reload();
}

/** A page that the browser kept shows what it showed when it was left: the session may have ended since. */
async function checkRestored(): Promise<void> {
  const { status, user } = store.get();
  const userId = user?.id ?? null;
  if (readKept('user') !== userId) return loadAnew();
  if (status === 'none') return;
  const sentAtMs = Date.now();
  if (!(await loadUser()) && !(await refreshSession(sentAtMs))) return;
  if (store.get().user?.id !== userId) loadAnew();
}

addEventListener('pageshow', ({ persisted }) => {
  // Without a connection, it stays as it was.
  if (persisted) checkRestored().catch(() => undefined);
});

channel?.addEventListener('message', ({ data }: MessageEvent<Notice>) => {
  const current = store.get();
  if (data.kind === 'signed-out') endHere(data.end);
  // Another user, or a page that was signed out: everything on it is of the wrong user.
  else if (data.kind === 'signed-in' && current.user?.id !== data.userId) location.reload();
  else if (current.status !== 'none') store.set({ ...current, status: 'active', csrfToken: data.csrfToken });
});
