import { decode } from '../../lib/pages.ts';

/** Finds the element that the address names. */
export function findTarget(root: HTMLElement): HTMLElement | null {
  const id = decode(location.hash.slice(1));
  return id === '' ? null : root.querySelector<HTMLElement>(`#${CSS.escape(id)}`);
}

/** Shows the element that the address names, otherwise the heading, and moves the focus there. */
export function scrollToTarget(root: HTMLElement): void {
  const target = findTarget(root);
  const focused = target ?? root.querySelector<HTMLElement>('h1');
  if (focused === null) return;
  focused.tabIndex = -1;
  focused.focus({ preventScroll: true });
  if (target === null) scrollTo(0, 0);
  else target.scrollIntoView();
}
