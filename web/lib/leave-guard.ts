import { useLayoutEffect, useRef } from 'preact/hooks';

/** Asks whether something may be left. Calls `leave` if so, at once or once somebody has said so. */
type Guard = (leave: () => void) => void;

const guards = new Set<Guard>();

/**
 * Asks before the visitor leaves a page on which something would be lost: by a link, by "back" or "forward", and by
 * closing the tab, about which browsers ask in their own words.
 * @param guard null while nothing would be lost
 */
export function useLeaveGuard(guard: Guard | null): void {
  const latest = useRef(guard);
  latest.current = guard;
  const isOn = guard !== null;
  // Not after the next frame, in which somebody may leave.
  useLayoutEffect(() => {
    if (!isOn) return;
    const ask: Guard = (leave) => (latest.current === null ? leave() : latest.current(leave));
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    guards.add(ask);
    addEventListener('beforeunload', warn);
    return () => {
      guards.delete(ask);
      removeEventListener('beforeunload', warn);
    };
  }, [isOn]);
}

/** The same with a question in the browser's own dialog. @param question null while nothing would be lost */
export function useLeaveQuestion(question: string | null): void {
  const ask: Guard = (leave) => {
    if (question === null || globalThis.confirm(question)) leave();
  };
  useLeaveGuard(question === null ? null : ask);
}

export const isGuarded = (): boolean => guards.size > 0;

/** Leaves, unless something would be lost and the visitor wants to stay. */
export function askToLeave(leave: () => void): void {
  const ask = ([guard, ...others]: readonly Guard[]): void =>
    guard === undefined ? leave() : guard(() => ask(others));
  ask([...guards]);
}
