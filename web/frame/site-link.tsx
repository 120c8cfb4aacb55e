import type { ComponentChildren } from 'preact';
import { Link, useLocation } from 'wouter-preact';
import { useLanguage } from '../lib/language.tsx';
import { findPage, loadPage } from '../lib/pages.ts';

/** A link to a page of the site. It begins to load the page when somebody is about to follow it. */
export function SiteLink({
  href,
  class: className,
  beside,
  isExact = href === '/',
  children,
  onClick,
}: {
  readonly href: string;
  readonly class?: string;
  /** Where else the link leads to the current section. */
  readonly beside?: string | undefined;
  /** Whether it leads to one page alone, and to no section. */
  readonly isExact?: boolean | undefined;
  readonly children: ComponentChildren;
  readonly onClick?: () => void;
}) {
  const [path] = useLocation();
  const language = useLanguage();
  const target = href.split(/[?#]/)[0]!;
  const isWithin = (section: string): boolean => path.startsWith(`${section}/`);
  const isCurrent =
    path === target || (!isExact && isWithin(target)) || (beside !== undefined && isWithin(beside));
  const prepare = (): void => {
    // If it fails, following the link says so.
    loadPage(findPage(target).name, language).catch(() => undefined);
  };
  return (
    <Link
      href={href}
      className={className ?? ''}
      aria-current={isCurrent ? 'page' : undefined}
      onPointerEnter={prepare}
      onFocus={prepare}
      onClick={() => onClick?.()}
    >
      {children}
    </Link>
  );
}
