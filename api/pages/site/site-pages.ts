import { guideNames } from '../guide-names.ts';
import type { InLanguages, SiteLanguage } from '../languages.ts';

export type { InLanguages, SiteLanguage };

/** A page of the site, which the application in `web/pages/<name>/` renders. */
export interface SitePage {
  /** Its folder in `web/pages/`. */
  readonly name: string;
  /** `:id` is one segment, and a `*` at the end the rest of the path, which may contain slashes. */
  readonly paths: readonly string[];
  /** Whether people without a session are sent to the sign-in page. */
  readonly needsSession: boolean;
  /** Null for a page that is titled with the name of the service alone. */
  readonly title: InLanguages | null;
}

const page = <const Name extends string>(
  name: Name,
  paths: readonly string[],
  needsSession: boolean,
  title: InLanguages | null,
) => ({ name, paths, needsSession, title });

/** All pages of the site. The server and the application read this list. */
export const sitePages = [
  page('home', ['/'], false, null),
  page('sign-in', ['/sign-in'], false, { en: 'Sign in', ru: 'Вход' }),
  page('keys', ['/keys'], true, { en: 'API keys', ru: 'API-ключи' }),
  page('requests', ['/requests'], true, { en: 'Requests', ru: 'Запросы' }),
  page('jobs', ['/jobs'], true, { en: 'Jobs', ru: 'Задания' }),
  page('job', ['/jobs/:id'], true, { en: 'Job', ru: 'Задание' }),
  page('batch', ['/batches/:id'], true, { en: 'Batch', ru: 'Пакет' }),
  page('models', ['/models'], false, { en: 'Models and prices', ru: 'Модели и цены' }),
  page('model', ['/models/*'], false, { en: 'Model', ru: 'Модель' }),
  page('playground', ['/playground'], true, { en: 'Playground', ru: 'Песочница' }),
  page('status', ['/status'], false, { en: 'Status', ru: 'Статус' }),
  page('docs', ['/docs', ...guideNames.map((name) => `/docs/${name}`)], false, {
    en: 'API reference',
    ru: 'Справочник API',
  }),
  page('settings', ['/settings'], true, { en: 'Settings', ru: 'Настройки' }),
] as const satisfies readonly SitePage[];

export type PageName = (typeof sitePages)[number]['name'];

/** What is shown at an unknown path. */
export const missingPage = page('not-found', [], false, {
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
