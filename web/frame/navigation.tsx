import { useCommon } from '../lib/language.tsx';
import { useSession } from '../lib/session.ts';
import { SiteLink } from './site-link.tsx';

const forUsers = [
  ['/', 'overview'],
  ['/keys', 'keys'],
  ['/requests', 'requests'],
  ['/jobs', 'jobs'],
  ['/playground', 'playground'],
] as const;
const forAll = [
  ['/models', 'models'],
  ['/status', 'status'],
  ['/docs', 'docs'],
] as const;

export interface SectionLink {
  readonly href: string;
  readonly label: string;
  /** Where else the link leads to the current section. */
  readonly beside?: string;
  /** Whether it leads to one page alone. */
  readonly isExact?: boolean;
}

/** The sections that the visitor can see. */
export function useSections(): readonly SectionLink[] {
  const common = useCommon();
  const { status } = useSession();
  const links = status === 'none' ? forAll : [...forUsers, ...forAll];
  return links.map(([href, name]) => ({
    href,
    label: common(name),
    ...(name === 'jobs' ? { beside: '/batches' } : {}),
  }));
}

/** @param onFollow called when a link is followed, to close the menu that it is in */
export function Navigation({
  sections,
  onFollow,
}: {
  readonly sections: readonly SectionLink[];
  readonly onFollow?: () => void;
}) {
  const common = useCommon();
  return (
    <nav class="navigation" aria-label={common('mainNavigation')}>
      {sections.map(({ href, label, beside, isExact }) => (
        <SiteLink
          key={href}
          href={href}
          beside={beside}
          isExact={isExact}
          {...(onFollow === undefined ? {} : { onClick: onFollow })}
        >
          {label}
        </SiteLink>
      ))}
    </nav>
  );
}
