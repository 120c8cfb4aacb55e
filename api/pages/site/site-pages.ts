import { guideNames } from '../guide-names.ts';
import type { InLanguages, SiteLanguage } from '../languages.ts';

export type { InLanguages, SiteLanguage };

export type PageAccess = 'all' | 'session' | 'operator';

/** A page of the site, which the application in `web/pages/<name>/` renders. */
export interface SitePage {
  /** Its folder in `web/pages/`. */
  readonly name: string;
  /** `:id` is one segment, and a `*` at the end the rest of the path, which may contain slashes. */
  readonly paths: readonly string[];
  /** `session`: people without one are sent to the sign-in page. `operator`: a page of the operator's console. */
  readonly access: PageAccess;
  /** Null for a page that is titled with the name of the service alone. */
  readonly title: InLanguages | null;
}

const page = <const Name extends string>(
  name: Name,
  paths: readonly string[],
  access: PageAccess,
  title: InLanguages | null,
) => ({ name, paths, access, title });

/** All pages of the site. The server and the application read this list. */
export const sitePages = [
  page('home', ['/'], 'all', null),
  page('sign-in', ['/sign-in'], 'all', { en: 'Sign in', ru: 'Вход' }),
  page('keys', ['/keys'], 'session', { en: 'API keys', ru: 'API-ключи' }),
  page('requests', ['/requests'], 'session', { en: 'Requests', ru: 'Запросы' }),
  page('jobs', ['/jobs'], 'session', { en: 'Jobs', ru: 'Задания' }),
  page('job', ['/jobs/:id'], 'session', { en: 'Job', ru: 'Задание' }),
  page('batch', ['/batches/:id'], 'session', { en: 'Batch', ru: 'Пакет' }),
  page('models', ['/models'], 'all', { en: 'Models and prices', ru: 'Модели и цены' }),
  page('model', ['/models/*'], 'all', { en: 'Model', ru: 'Модель' }),
  page('playground', ['/playground'], 'session', { en: 'Playground', ru: 'Песочница' }),
  page('status', ['/status'], 'all', { en: 'Status', ru: 'Статус' }),
  page('docs', ['/docs', ...guideNames.map((name) => `/docs/${name}`)], 'all', {
    en: 'API reference',
    ru: 'Справочник API',
  }),
  page('settings', ['/settings'], 'session', { en: 'Settings', ru: 'Настройки' }),
  // `/admin/queues` is the queue board.
  page('admin-overview', ['/admin'], 'operator', { en: 'Console', ru: 'Консоль' }),
  page('admin-accounts', ['/admin/accounts'], 'operator', { en: 'Accounts', ru: 'Аккаунты' }),
  page('admin-account', ['/admin/accounts/:id'], 'operator', { en: 'Account', ru: 'Аккаунт' }),
  page('admin-requests', ['/admin/requests'], 'operator', { en: 'All requests', ru: 'Все запросы' }),
  page('admin-models', ['/admin/models'], 'operator', { en: 'Models and routes', ru: 'Модели и маршруты' }),
  page('admin-work', ['/admin/work'], 'operator', { en: 'Queues and work', ru: 'Очереди и работа' }),
  page('admin-codes', ['/admin/codes'], 'operator', { en: 'Codes', ru: 'Коды' }),
  page('admin-users', ['/admin/users'], 'operator', { en: 'Users', ru: 'Пользователи' }),
  page('admin-audit', ['/admin/audit'], 'operator', { en: 'Audit', ru: 'Журнал изменений' }),
] as const satisfies readonly SitePage[];

/** What is shown at an unknown path. */
export const missingPage = page('not-found', [], 'all', {
  en: 'Page not found',
  ru: 'Страница не найдена',
}) satisfies SitePage;

/** Returns the page at a path, or null if there is none. */
export function findSitePage(path: string): (typeof sitePages)[number] | null {
  return sitePages.find(({ paths }) => paths.some((pattern) => matchesPath(pattern, path))) ?? null;
}

function matchesPath(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const segments = path.split('/');
  if (wanted.at(-1) === '*') {
    const fixed = wanted.slice(0, -1);
    return segments.length > fixed.length && segments[fixed.length] !== '' && startsWith(segments, fixed);
  }
  return segments.length === wanted.length && startsWith(segments, wanted);
}

const startsWith = (segments: readonly string[], wanted: readonly string[]): boolean =>
  wanted.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]));
