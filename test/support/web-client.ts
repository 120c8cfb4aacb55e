import type { AuthResult } from '../../api/contract/web-auth.ts';
import { openWebStores, type WebStores } from '../../shared/account-area/web-stores.ts';
import type { WebUser } from '../../shared/account-area/web-models.ts';
import { retryUntilSuccess } from './retry-until-success.ts';
import type { TestStack } from './stack.ts';

export interface WebClientOptions {
  readonly userAgent?: string;
  readonly language?: string;
  /** Sent with every request, such as `x-forwarded-for`. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Makes HTTP requests as a page in a browser does: stores cookies and sends them back, with the CSRF token. */
export class WebClient {
  readonly url: string;
  readonly cookies = new Map<string, string>();
  csrfToken: string | null = null;
  readonly #options: WebClientOptions;

  constructor(url: string, options: WebClientOptions = {}) {
    this.url = url;
    this.#options = options;
  }

  get cookieHeader(): string {
    return Array.from(this.cookies, ([name, value]) => `${name}=${value}`).join('; ');
  }

  /** @param path below `/v1/web` */
  async request(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    return await this.#send(method, `/web${path}`, body, headers);
  }

  /**
   * Calls an operation of a key for one of the user's accounts.
   * @param path below `/v1`
   * @param body sent as JSON, unless it is a form
   */
  async requestFor(
    linkId: number,
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    return await this.#send(method, path, body, { 'x-api-account': String(linkId), ...headers });
  }

  async #send(
    method: string,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>>,
  ): Promise<Response> {
    const { userAgent, language } = this.#options;
    const isForm = body instanceof FormData;
    const response = await fetch(`${this.url}/v1${path}`, {
      method,
      headers: {
        ...(this.cookies.size === 0 ? {} : { cookie: this.cookieHeader }),
        ...(this.csrfToken === null || method === 'GET' ? {} : { 'x-csrf-token': this.csrfToken }),
        ...(userAgent === undefined ? {} : { 'user-agent': userAgent }),
        ...(language === undefined ? {} : { 'accept-language': language }),
        ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
        ...this.#options.headers,
        ...headers,
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    });
    this.keepCookies(response);
    return response;
  }

  keepCookies(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (value === '') this.cookies.delete(name!);
      else this.cookies.set(name!, value!);
    }
  }

  /** Stores the CSRF token of a sign-in or a refresh. */
  async keepResult(response: Response): Promise<AuthResult> {
    const result = (await response.json()) as AuthResult;
    this.csrfToken = result.csrf_token;
    return result;
  }

  /** Requests a mailed code and signs in with it. `readCode` must return the code from the mail. */
  async signIn(
    email: string,
    readCode: (email: string) => Promise<string>,
    options: { purpose?: 'login' | 'signup'; rememberMe?: boolean; timezone?: string } = {},
  ): Promise<AuthResult> {
    const { purpose = 'signup', rememberMe = false, timezone } = options;
    const requested = await this.request('POST', '/auth/request-code', { email, purpose });
    if (requested.status !== 201) throw new Error(`${requested.status}: ${await requested.text()}`);
    const { challenge_id } = (await requested.json()) as { challenge_id: string };
    const code = await readCode(email);
    const verified = await this.request('POST', '/auth/verify-code', {
      challenge_id,
      code,
      remember_me: rememberMe,
      ...(timezone === undefined ? {} : { timezone }),
    });
    if (verified.status !== 200) throw new Error(`${verified.status}: ${await verified.text()}`);
    return await this.keepResult(verified);
  }
}

const openedStores = new WeakMap<TestStack, WebStores>();

/** The account area's stores, opened once per stack, because opening them again adds listeners to the connection. */
export function webStoresOf(stack: TestStack): WebStores {
  const stores = openedStores.get(stack) ?? openWebStores(stack.mongo, stack.config);
  openedStores.set(stack, stores);
  return stores;
}

/** Creates a user with a session, without mailing a code, for tests of anything after sign-in. */
export async function createWebUser(
  stack: TestStack,
  email: string,
  options: WebClientOptions & { readonly rememberMe?: boolean } = {},
): Promise<{ client: WebClient; user: WebUser; sessionId: string }> {
  const { users, sessions } = webStoresOf(stack);
  const { user } = await retryUntilSuccess('MongoDB to take the user', () =>
    users.findOrCreate(email, { language: 'ru' }),
  );
  const { session, accessToken, refreshToken, csrfToken } = await sessions.start({
    userId: user._id,
    rememberMe: options.rememberMe ?? false,
    device: { osName: 'Linux', browserName: 'Firefox', deviceType: 'desktop' },
    address: '127.0.0.1',
  });
  const client = new WebClient(stack.url, options);
  const prefix = stack.config.publicUrl?.startsWith('https:') === true ? '__Host-' : '';
  client.cookies.set(`${prefix}mg_session`, accessToken);
  client.cookies.set(`${prefix}mg_refresh`, refreshToken);
  client.csrfToken = csrfToken;
  return { client, user, sessionId: session._id };
}
