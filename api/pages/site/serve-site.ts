// decision 0101
import compose from 'koa-compose';
import { describeWebConfig } from '../../account-area/describe-web-config.ts';
import { readSessionHint, type SessionHint } from '../../account-area/read-session-hint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { meterWork } from '../../http/middleware/meter-work.ts';
import { describeApi } from '../../description/describe-api.ts';
import type { ApiContext, ApiMiddleware } from '../../http/request/context.ts';
import { languageOf } from '../../http/request/language-of.ts';
import { readQueryString } from '../../http/request/read-query-string.ts';
import { readCookie } from '../../http/request/session-cookies.ts';
import { PreparedBodies, PreparedBody } from '../../http/responses/prepared-body.ts';
import { sendPrepared } from '../../responses/send-prepared.ts';
import type { Services } from '../../services.ts';
import { Docs } from '../docs/docs.ts';
import type { GuideSources } from '../docs/read-guides.ts';
import { assetPolicy, fileHeaders, pageHeaders, writePagePolicy } from './page-headers.ts';
import { renderShell, themes, type Theme } from './render-shell.ts';
import { findSitePage, missingPage, type SiteLanguage, type SitePage } from './site-pages.ts';
import type { WebBuild } from './web-build.ts';

const assetsPath = '/assets/';
/** The name of an asset changes with its content. */
const assetCacheControl = 'public, max-age=31536000, immutable';
const searchPath = '/docs/search.json';
const maxAcceptLength = 1_000;

/** Paths that belong to programs, also in a browser. */
const isForPrograms = (path: string): boolean => /^\/(?:v1|files)(?:\/|$)/.test(path);

/** Serves the pages of the site and their files, and a page instead of the error for an unknown path in a browser. */
export function serveSite(services: Services, build: WebBuild, guides: GuideSources): ApiMiddleware {
  const pages = new SitePages(services, build, guides);
  const inTurns = (work: (context: ApiContext) => Promise<void>): ApiMiddleware =>
    compose([beginInTurns(null, { operationId: 'site' }), work].map(meterWork));
  const serveAsset = inTurns(async (context) => {
    const name = context.path.slice(assetsPath.length);
    const body = services.brand.files.get(name) ?? (await build.readAsset(name));
    if (body === null) return;
    context.set({ ...fileHeaders, 'content-security-policy': assetPolicy });
    await sendPrepared(context, body, assetCacheControl);
  });
  const servePage = inTurns((context) => pages.serve(context));
  const serveSearch = inTurns((context) => pages.sendSearchEntries(context));
  const serveMissing = inTurns((context) => pages.send(context, missingPage, 404));
  return async (context, next) => {
    const { method, path } = context;
    const isRead = method === 'GET' || method === 'HEAD';
    if (isRead && path.startsWith(assetsPath)) await serveAsset(context, nothing);
    else if (isRead && path === searchPath) await serveSearch(context, nothing);
    else if (isRead && acceptsPages(context) && findSitePage(withoutSlash(path)) !== null)
      await servePage(context, nothing);
    else {
      await next();
      if (isRead && isUnknown(context) && isBrowser(context)) await serveMissing(context, nothing);
    }
  };
}

/** Whether nothing has served the path, and a browser may see a page instead of the error. */
const isUnknown = ({ status, body, respond, path }: ApiContext): boolean =>
  status === 404 && body === undefined && respond !== false && !isForPrograms(path);

const nothing = (): Promise<void> => Promise.resolve();

/** Clients of the API with a wrong base URL, which want JSON, get the error that explains it. */
const acceptsPages = (context: ApiContext): boolean =>
  context.get('accept').length > maxAcceptLength || context.accepts('html') !== false;

/** Programs, such as curl, accept anything, or do not say. */
function isBrowser(context: ApiContext): boolean {
  const accept = context.get('accept');
  return accept.length <= maxAcceptLength && accept.includes('text/html');
}

const withoutSlash = (path: string): string =>
  path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;

class SitePages {
  readonly #services: Services;
  readonly #build: WebBuild;
  readonly #policy: string;
  readonly #guides: GuideSources;
  readonly #bodies = new PreparedBodies();
  #docs: { readonly docs: Docs; readonly publicUrl: string } | null = null;

  constructor(services: Services, build: WebBuild, guides: GuideSources) {
    const { publicUrl } = services.config.s3;
    this.#services = services;
    this.#build = build;
    this.#guides = guides;
    this.#policy = writePagePolicy(publicUrl === null ? null : new URL(publicUrl).origin);
  }

  async serve(context: ApiContext): Promise<void> {
    const { path, search } = context;
    const page = findSitePage(withoutSlash(path))!;
    if (withoutSlash(path) !== path) {
      context.redirect(`${withoutSlash(path)}${search}`);
      context.status = 308;
    } else if (page.access === 'session' && this.#readHint(context) === 'none') {
      // A browser shows the page again after somebody has signed in.
      context.set('cache-control', 'no-store');
      context.redirect(`/sign-in?next=${encodeURIComponent(`${path}${search}`)}`);
    } else await this.send(context, page, 200);
  }

  async send(context: ApiContext, page: SitePage, status: number): Promise<void> {
    const session = this.#readHint(context);
    context.set({ ...pageHeaders, 'content-security-policy': this.#policy });
    context.vary(['cookie', 'accept-language']);
    const body = this.#prepare(context.path, page, readSiteLanguage(context), readTheme(context), session);
    await sendPrepared(context, body, session === 'none' ? 'no-cache' : 'no-store', status);
  }

  /** Sends what can be found in the documentation, in the language that the query names. */
  async sendSearchEntries(context: ApiContext): Promise<void> {
    const { language: wanted } = readQueryString(context.querystring);
    const language = wanted === 'ru' ? 'ru' : 'en';
    context.set(fileHeaders);
    const docs = this.#readDocs();
    const body = this.#bodies.get([this.#services.publicUrl], `search ${language}`, () =>
      PreparedBody.ofJson(docs.listSearchEntries(language)),
    );
    await sendPrepared(context, body, 'no-cache');
  }

  /** The examples contain the public URL, and name models of the catalog as it was first. */
  #readDocs(): Docs {
    const { publicUrl, catalog } = this.#services;
    if (this.#docs?.publicUrl !== publicUrl)
      this.#docs = { docs: new Docs(describeApi(publicUrl), this.#guides, catalog.current), publicUrl };
    return this.#docs.docs;
  }

  #readHint(context: ApiContext): SessionHint {
    return readSessionHint(this.#services.web.sessions, (cookie) =>
      readCookie(context, this.#services.config, cookie),
    );
  }

  #prepare(
    path: string,
    page: SitePage,
    language: SiteLanguage,
    theme: Theme,
    session: SessionHint,
  ): PreparedBody {
    // The public URL is known once the server listens.
    const { publicUrl, brand } = this.#services;
    const content = page.name === 'docs' ? this.#readDocs().readPage(path, language) : null;
    const key = [page.name, content === null ? '' : path, language, theme, session].join(' ');
    return this.#bodies.get([publicUrl], key, () => {
      const files = this.#build.listFiles(page, language);
      const text = renderShell({
        page,
        content,
        language,
        theme,
        session,
        config: describeWebConfig(this.#services),
        files,
        brandStylesheet: brand.stylesheet,
      });
      return new PreparedBody(text, 'text/html; charset=utf-8');
    });
  }
}

/** The language that the visitor chose, otherwise that of the browser. */
function readSiteLanguage(context: ApiContext): SiteLanguage {
  const chosen = context.cookies.get('mg_language');
  return chosen === 'en' || chosen === 'ru' ? chosen : languageOf(context);
}

function readTheme(context: ApiContext): Theme {
  const chosen = context.cookies.get('mg_theme');
  return themes.find((theme) => theme === chosen) ?? 'system';
}
