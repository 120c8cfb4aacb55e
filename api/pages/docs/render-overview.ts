import type { Description } from '../../description/description.ts';
import { formatText } from './format-text.ts';
import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import { renderCode } from './render-examples.ts';
import { cookieFile } from './write-curl.ts';

/** Renders the chapters before the operations: general rules, the base URL and the key. */
export function renderOverview({ info, servers }: Description): Html {
  const serverUrl = servers[0]?.url ?? '';
  return html`<section id="overview" class="chapter first">
      <h1>${info.title} <span class="version">${info.version}</span></h1>
      <div class="columns">
        <div class="prose">
          ${formatText(info.description)}
          <p>
            This page is generated from the OpenAPI description,
            <a href="/v1/openapi.json">openapi.json</a>.
          </p>
        </div>
        <div class="examples">
          ${renderCode('Base URL', html`${serverUrl}/v1`)}
          ${renderCode('First request', html`curl ${serverUrl}/v1/models`)}
        </div>
      </div>
    </section>
    <section id="authentication" class="chapter">
      <h2>Authentication</h2>
      <div class="columns">
        <div class="prose">
          <p>
            Send your API key as a bearer token. A key gives access to an account and its balance: do not put
            it in web pages, apps or repositories.
          </p>
          <p>The commands on this page read the key from <code>API_KEY</code>.</p>
          <p>
            Operations of the account area use session cookies instead. The commands on this page store them
            in
            <code>${cookieFile}</code>: first <a href="#requestCode">request a code</a>, then
            <a href="#verifyCode">sign in with it</a>, and set <code>CSRF_TOKEN</code> to the
            <code>csrf_token</code> of the response. A captcha requires a web page to click in, so signing in
            with curl works only if the operator has set <code>WEB_CAPTCHA=off</code>.
          </p>
        </div>
        <div class="examples">
          ${renderCode('Set the key for the examples', html`export API_KEY=mg-...`)}
          ${renderCode('Header', html`Authorization: Bearer $API_KEY`)}
          ${renderCode('Set the CSRF token of a session', html`export CSRF_TOKEN=...`)}
        </div>
      </div>
    </section> `;
}
