import type { TriedOperation } from '../../../api/pages/docs-data.ts';
import { findSitePage } from '../../../api/pages/site/site-pages.ts';
import { copyText } from '../../ui/copy.tsx';
import { chooseCode, restoreChoice } from './code-choice.ts';

export interface EnhanceOptions {
  readonly navigate: (href: string) => void;
  readonly onTry: (operation: TriedOperation, button: HTMLElement) => void;
  readonly onCopied: () => void;
  /** What the button says after it has copied. */
  readonly copied: string;
}

const shownMs = 2_000;

/** Makes the buttons and links in the content of the server work. Returns a function that ends it. */
export function enhance(root: HTMLElement, options: EnhanceOptions): () => void {
  restoreChoice(root);
  root.classList.add('enhanced');
  const onClick = (event: MouseEvent): void => {
    const target = event.target as Element;
    const button = target.closest<HTMLElement>('.docs-button');
    if (button !== null) pressButton(root, button, options);
    const link = target.closest('a');
    if (link !== null) followLink(root, link, event, options);
  };
  const onChange = ({ target }: Event): void => {
    if (target instanceof HTMLInputElement && target.name === 'code') chooseCode(root, target.value, target);
  };
  const onHash = (): void => markCurrent(root);
  root.addEventListener('click', onClick);
  root.addEventListener('change', onChange);
  addEventListener('hashchange', onHash);
  onHash();
  return () => {
    root.removeEventListener('click', onClick);
    root.removeEventListener('change', onChange);
    removeEventListener('hashchange', onHash);
  };
}

function pressButton(root: HTMLElement, button: HTMLElement, options: EnhanceOptions): void {
  const { code, try: tried } = button.dataset;
  if (code !== undefined) chooseCode(root, code, button);
  else if (tried !== undefined) options.onTry(JSON.parse(tried) as TriedOperation, button);
  else copyCode(button, options);
}

function copyCode(button: HTMLElement, { onCopied, copied }: EnhanceOptions): void {
  const blocks = [...(button.closest('figure')?.querySelectorAll('pre') ?? [])];
  const text = blocks.find((block) => block.getClientRects().length > 0)?.textContent ?? '';
  const show = (isCopied: boolean): void => {
    if (!isCopied || button.dataset['label'] !== undefined) return;
    onCopied();
    button.dataset['label'] = button.textContent;
    button.textContent = copied;
    setTimeout(() => {
      button.textContent = button.dataset['label']!;
      delete button.dataset['label'];
    }, shownMs);
  };
  copyText(text).then(show, () => undefined);
}

/** Links to other pages of the site load only those. Links on the same page are left to the browser. */
function followLink(
  root: HTMLElement,
  link: HTMLAnchorElement,
  event: MouseEvent,
  options: EnhanceOptions,
): void {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!isPlain || link.origin !== location.origin) return;
  root.querySelector<HTMLDetailsElement>('.docs-menu')?.removeAttribute('open');
  if (link.pathname === location.pathname || findSitePage(link.pathname) === null) return;
  event.preventDefault();
  options.navigate(`${link.pathname}${link.search}${link.hash}`);
}

/** Marks the link of the navigation to what the address names, and opens its chapter. */
function markCurrent(root: HTMLElement): void {
  for (const link of root.querySelectorAll('nav [aria-current=location]'))
    link.removeAttribute('aria-current');
  if (location.hash === '') return;
  const href = CSS.escape(`${location.pathname}${location.hash}`);
  for (const link of root.querySelectorAll(`nav a[href="${href}"]`)) {
    link.setAttribute('aria-current', 'location');
    link.closest('details:not(.docs-menu)')?.setAttribute('open', '');
  }
}
