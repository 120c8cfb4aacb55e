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

/** @param onFollow called when a link is followed, to close the menu that it is in */
export function Navigation({ onFollow }: { readonly onFollow?: () => void }) {
  const common = useCommon();
  const { status } = useSession();
  const links = status === 'none' ? forAll : [...forUsers, ...forAll];
  return (
    <nav class="navigation" aria-label={common('mainNavigation')}>
      {links.map(([href, name]) => (
        <SiteLink
          key={href}
          href={href}
          beside={name === 'jobs' ? '/batches' : undefined}
          {...(onFollow === undefined ? {} : { onClick: onFollow })}
        >
          {common(name)}
        </SiteLink>
      ))}
    </nav>
  );
}
