import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { brandMark } from '../../api/pages/brand-mark.ts';
import { switchAccount, useAccounts } from '../lib/accounts.ts';
import { useFormat } from '../lib/format.ts';
import { languages, switchLanguage, useCommon, useLanguage } from '../lib/language.tsx';
import { signInHref } from '../lib/next-path.ts';
import { config } from '../lib/page-facts.ts';
import { signOut, useSession } from '../lib/session.ts';
import { switchTheme, themes, useTheme } from '../lib/theme.ts';
import { describeError } from '../lib/api-error.ts';
import { Button } from '../ui/button.tsx';
import { LaterDialog } from '../ui/later-dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { Menu, type MenuGroup } from '../ui/menu.tsx';
import { showToast } from '../ui/toast.tsx';
import { Navigation, useSections, type SectionLink } from './navigation.tsx';
import { SiteLink } from './site-link.tsx';

export function Header() {
  const { status } = useSession();
  return (
    <HeaderFrame home="/" name={config.name} sections={useSections()}>
      {status !== 'none' && <AccountMenu />}
      <AppearanceMenu />
      {status === 'none' ? <SignInLink /> : <UserMenu />}
    </HeaderFrame>
  );
}

/** The bar above each page: the brand, the sections and, at its end, menus. At phone width, the sections are a menu. */
export function HeaderFrame({
  home,
  name,
  sections,
  children,
}: {
  readonly home: string;
  readonly name: ComponentChildren;
  readonly sections: readonly SectionLink[];
  readonly children: ComponentChildren;
}) {
  return (
    <header class="header">
      <div class="header-inner">
        <SiteLink href={home} class="brand">
          {config.logo_url === null ? <Mark /> : <img src={config.logo_url} alt="" height="28" />}
          <span>{name}</span>
        </SiteLink>
        {sections.length > 0 && <Navigation sections={sections} />}
        <div class="header-end">
          {children}
          {sections.length > 0 && <PhoneMenu sections={sections} />}
        </div>
      </div>
    </header>
  );
}

/** The product's own mark. */
const Mark = () => (
  <svg width="28" height="28" viewBox={brandMark.viewBox} aria-hidden="true" class="mark">
    <rect width="16" height="16" rx={brandMark.radius} />
    <path d={brandMark.path} />
  </svg>
);

function SignInLink() {
  const common = useCommon();
  const [path] = useLocation();
  if (path === '/sign-in') return null;
  return (
    <SiteLink href={signInHref()} class="button primary medium">
      {common('signIn')}
    </SiteLink>
  );
}

const languageNames = { ru: 'Русский', en: 'English' } as const;

function useAppearanceGroups(): readonly MenuGroup[] {
  const common = useCommon();
  const language = useLanguage();
  const theme = useTheme();
  const themeNames = { system: 'themeSystem', light: 'themeLight', dark: 'themeDark' } as const;
  const choose = (chosen: (typeof languages)[number]): void => {
    switchLanguage(chosen).catch((error: unknown) => showToast(describeError(error, language), 'error'));
  };
  return [
    {
      label: common('language'),
      items: languages.map((one) => ({
        value: `language-${one}`,
        label: <span lang={one}>{languageNames[one]}</span>,
        isChosen: one === language,
        onSelect: () => choose(one),
      })),
    },
    {
      label: common('theme'),
      items: themes.map((one) => ({
        value: `theme-${one}`,
        label: common(themeNames[one]),
        isChosen: one === theme,
        onSelect: () => switchTheme(one),
      })),
    },
  ];
}

export function AppearanceMenu() {
  const common = useCommon();
  return (
    <Menu
      label={common('appearance')}
      button={<Icon name="sliders" size={20} />}
      groups={useAppearanceGroups()}
    />
  );
}

function AccountMenu() {
  const common = useCommon();
  const format = useFormat();
  const [, navigate] = useLocation();
  const { accounts, selected } = useAccounts();
  if (accounts === null) return <span class="account-button loading" aria-hidden="true" />;
  if (selected === null)
    return (
      <SiteLink href="/keys" class="account-button">
        {common('noAccount')}
      </SiteLink>
    );
  const balance = format.money(selected.balance);
  const items = accounts.map((account) => ({
    value: String(account.id),
    label: (
      <span class="account-line">
        <span>{account.label}</span>
        <span class="money soft">{format.money(account.balance)}</span>
      </span>
    ),
    isChosen: account.id === selected.id,
    onSelect: () => switchAccount(account.id),
  }));
  const manage = {
    value: 'manage',
    label: common('manageAccounts'),
    icon: 'settings' as const,
    onSelect: () => navigate('/keys'),
  };
  return (
    <Menu
      label={common('accounts')}
      hasText
      buttonClass="account-button"
      button={
        <>
          <span class="unseen">{common('account')} </span>
          <span class="account-name">{selected.label}</span>
          <span class="unseen">, {common('balance')} </span>
          <span class="money">{balance}</span>
          <Icon name="down" size={14} />
        </>
      }
      groups={[{ label: common('accounts'), items }, { items: [manage] }]}
    />
  );
}

function UserMenu() {
  const common = useCommon();
  const language = useLanguage();
  const [, navigate] = useLocation();
  const email = useSession().user?.email ?? '';
  const leave = (): void => {
    signOut(() => navigate('/')).catch((error: unknown) =>
      showToast(describeError(error, language), 'error'),
    );
  };
  return (
    <Menu
      label={common('userMenu', { email })}
      button={<Icon name="user" size={22} />}
      head={<span class="user-email">{email}</span>}
      groups={[
        {
          items: [
            {
              value: 'settings',
              label: common('settings'),
              icon: 'settings',
              onSelect: () => navigate('/settings'),
            },
            { value: 'sign-out', label: common('signOut'), icon: 'sign-out', onSelect: leave },
          ],
        },
      ]}
    />
  );
}

/** The navigation at phone width. */
function PhoneMenu({ sections }: { readonly sections: readonly SectionLink[] }) {
  const common = useCommon();
  const [isOpen, setIsOpen] = useState(false);
  const close = (): void => setIsOpen(false);
  return (
    <span class="phone-menu">
      <Button kind="quiet" icon="menu" aria-label={common('openMenu')} onClick={() => setIsOpen(true)} />
      <LaterDialog title={common('menu')} isOpen={isOpen} onClose={close} size="small">
        <Navigation sections={sections} onFollow={close} />
      </LaterDialog>
    </span>
  );
}
