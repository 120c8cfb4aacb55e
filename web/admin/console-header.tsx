import { AppearanceMenu, HeaderFrame } from '../frame/header.tsx';
import { describeError } from '../lib/api-error.ts';
import { useLanguage } from '../lib/language.tsx';
import { config } from '../lib/page-facts.ts';
import { Icon } from '../ui/icon.tsx';
import { Menu, type MenuItem } from '../ui/menu.tsx';
import { showToast } from '../ui/toast.tsx';
import { Finder } from './finder.tsx';
import { signOut, useConsoleSession, type AdminSession } from './session.ts';
import { useConsole } from './texts.ts';

const sections = ['accounts', 'requests', 'models', 'work', 'codes', 'users', 'audit'] as const;

export function ConsoleHeader() {
  const t = useConsole();
  const { status, session } = useConsoleSession();
  const isSignedIn = status !== 'none' && session !== null;
  const links = [
    { href: '/admin', label: t('overview'), isExact: true },
    ...sections.map((name) => ({ href: `/admin/${name}`, label: t(name) })),
  ];
  const name = (
    <>
      {config.name} <span class="console-badge">{t('operator')}</span>
    </>
  );
  return (
    <HeaderFrame home="/admin" name={name} sections={isSignedIn ? links : []}>
      {isSignedIn && <Finder />}
      <AppearanceMenu />
      {isSignedIn && <TokenMenu session={session} />}
    </HeaderFrame>
  );
}

/** Links out of the console are other documents: it shares nothing with the pages of customers. */
const follow = (href: string) => (): void => location.assign(href);

function TokenMenu({ session: { name, scope } }: { readonly session: AdminSession }) {
  const t = useConsole();
  const language = useLanguage();
  const leave = (): void => {
    signOut().catch((error: unknown) => showToast(describeError(error, language), 'error'));
  };
  const links: MenuItem[] = [
    { value: 'site', label: t('toSite'), icon: 'external', onSelect: follow('/') },
    { value: 'board', label: t('toBoard'), icon: 'external', onSelect: follow('/admin/queues') },
    { value: 'reference', label: t('toReference'), icon: 'external', onSelect: follow('/docs#admin') },
  ];
  return (
    <Menu
      label={t('tokenMenu', { name })}
      button={<Icon name="user" size={22} />}
      head={
        <span class="console-token">
          <span>{t('tokenMenu', { name })}</span>
          <span class="soft">{t(`scope_${scope}`)}</span>
        </span>
      }
      groups={[
        { items: links },
        { items: [{ value: 'sign-out', label: t('signOut'), icon: 'sign-out', onSelect: leave }] },
      ]}
    />
  );
}
