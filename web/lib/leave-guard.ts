import { useEffect } from 'preact/hooks';

const guards = new Set<() => string>();

/**
 * Asks before the visitor leaves a page whose changes would be lost.
 * @param question null while nothing would be lost
 */
export function useLeaveGuard(question: string | null): void {
  useEffect(() => {
    if (question === null) return;
    const guard = (): string => question;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    guards.add(guard);
    addEventListener('beforeunload', warn);
    return () => {
      guards.delete(guard);
      removeEventListener('beforeunload', warn);
    };
  }, [question]);
}

/** Whether the visitor wants to leave. Asks only if something would be lost. */
export function mayLeave(): boolean {
  // The browser's own dialog works everywhere, and blocks the navigation.
  return [...guards].every((guard) => globalThis.confirm(guard()));
}
