import { html, type Html } from '../../../shared/platform/runtime/html.ts';
import type { Description } from '../../description/description.ts';
import type { InLanguages } from '../languages.ts';
import type { DocsTexts } from './docs-texts.ts';
import { formatText } from './format-text.ts';
import { renderCode, renderSamples } from './render-code.ts';
import { listRequests, writeSamples } from './render-examples.ts';
import { cookieFile } from './samples/write-curl.ts';

interface OverviewTexts {
  readonly what: string;
  readonly generated: string;
  readonly first: string;
  readonly key: string;
  readonly session: string;
  readonly setKey: string;
  readonly header: string;
  readonly setToken: string;
}

const overviewTexts: Readonly<Record<keyof InLanguages, OverviewTexts>> = {
  en: {
    what:
      'An OpenAI-compatible API for chat, images and embeddings, paid from a prepaid balance in roubles. To use it with ' +
      'any OpenAI client, set the base URL, which ends in `/v1`, and your API key.',
    generated: 'This reference is generated from the OpenAPI description,',
    first:
      'Set the key, then send a chat. The answer is in `choices`, and what it cost in `usage`. The guides beside this ' +
      'reference say more: begin with the first request.',
    key:
      'Send your API key as a bearer token. A key gives access to an account and its balance: do not put it in web ' +
      'pages, apps or repositories. The examples read it from `API_KEY`.',
    session:
      'Operations of the account area use session cookies instead. The commands store them in ' +
      `\`${cookieFile}\`: first request a code, then sign in with it, and set \`CSRF_TOKEN\` to the \`csrf_token\` of ` +
      'the response. A captcha requires a web page to click in, so signing in with curl works only if the operator has ' +
      'set `WEB_CAPTCHA=off`.',
    setKey: 'Set the key for the examples',
    header: 'Header',
    setToken: 'Set the CSRF token of a session',
  },
  ru: {
    what:
      'API для чата, изображений и эмбеддингов, совместимый с OpenAI. Оплата — с баланса в рублях, пополненного ' +
      'заранее. Подойдёт любой клиент OpenAI: укажите базовый адрес, который заканчивается на `/v1`, и свой API-ключ.',
    generated: 'Справочник составлен по описанию OpenAPI; описания операций — на английском. Само описание:',
    first:
      'Задайте ключ и отправьте запрос к чату. Ответ — в `choices`, стоимость — в `usage`. Подробнее — в ' +
      'руководствах рядом; начните с первого запроса.',
    key:
      'Передавайте API-ключ как bearer-токен. Ключ даёт доступ к аккаунту и его балансу: не кладите его в ' +
      'веб-страницы, приложения и репозитории. Примеры берут ключ из переменной `API_KEY`.',
    session:
      'Операции личного кабинета работают с cookie сессии. Команды хранят их в файле ' +
      `\`${cookieFile}\`: сначала запросите код, затем войдите с ним и запишите \`csrf_token\` из ответа в ` +
      '`CSRF_TOKEN`. Капчу нужно пройти на странице, поэтому вход через curl возможен, только если оператор задал ' +
      '`WEB_CAPTCHA=off`.',
    setKey: 'Ключ для примеров',
    header: 'Заголовок',
    setToken: 'CSRF-токен сессии',
  },
};

/** Renders the chapters before the operations: what this is, a first chat, the key, and general rules. */
export function renderOverview({ info, servers, paths }: Description, texts: DocsTexts): Html {
  const serverUrl = servers[0]?.url ?? '';
  const words = overviewTexts[texts.language];
  const [, ...conventions] = info.description.split('\n\n');
  return html`<section id="overview" class="chapter first">
      <h1>${texts.title} <span class="version">${info.version}</span></h1>
      <div class="columns">
        <div class="docs-text">
          ${formatText(words.what)}
          <p>${words.generated} <a href="/v1/openapi.json">openapi.json</a>.</p>
        </div>
        <div class="examples">${renderCode(texts.baseUrl, `${serverUrl}/v1`, texts)}</div>
      </div>
    </section>
    <section id="first-chat" class="chapter">
      <h2>${texts.firstRequest}</h2>
      <div class="columns">
        <div class="docs-text">${formatText(words.first)}</div>
        <div class="examples">
          ${renderCode(words.setKey, 'export API_KEY=mg-...', texts)}
          ${renderFirstChat(serverUrl, paths, texts)}
        </div>
      </div>
    </section>
    <section id="authentication" class="chapter">
      <h2>${texts.authentication}</h2>
      <div class="columns">
        <div class="docs-text">${formatText(words.key)} ${formatText(words.session)}</div>
        <div class="examples">
          ${renderCode(words.header, 'Authorization: Bearer $API_KEY', texts)}
          ${renderCode(words.setToken, 'export CSRF_TOKEN=...', texts)}
        </div>
      </div>
    </section>
    <section id="conventions" class="chapter">
      <h2>${texts.conventions}</h2>
      <div class="docs-text" lang="en">${conventions.flatMap(formatText)}</div>
    </section> `;
}

const chatPath = '/v1/chat/completions';

/** A description of a part of the API may have no chat. */
function renderFirstChat(serverUrl: string, paths: Description['paths'], texts: DocsTexts): Html | null {
  const operation = paths[chatPath]?.['post'];
  if (operation === undefined) return null;
  const [first] = listRequests({ serverUrl, method: 'post', path: chatPath, operation });
  return renderSamples(texts.firstRequest, writeSamples(first!.call), texts);
}
