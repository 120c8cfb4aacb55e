import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json as readJson } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { withBrowser } from '../support/browser.ts';
import { makeBlackPng } from '../support/make-black-png.ts';
import type { StackOptions } from '../support/stack.ts';
import {
  findAxeProblems,
  signIn,
  takeScreenshots,
  usePages,
  useWebPage,
  type WebPage,
  type WebPageOptions,
} from '../support/web-page.ts';

/** The playground, with the demo models and a vendor that says what a test wants. */

interface VendorCall {
  readonly body: { readonly model: string; readonly messages: { role: string; content: unknown }[] };
  readonly response: ServerResponse;
}

let vendor: Server;
const calls: VendorCall[] = [];

const answer = `## Answer

A **bold** word, \`code\`, a [link](https://example.com/page) and a [trap](javascript:alert(1)).

| model | price |
|---|---:|
| a | 1 |

\`\`\`python
print("hello")
\`\`\`

<img src="https://example.com/x.png" onerror="alert(1)"> ![remote](https://example.com/y.png)
`;

/** Each is a list within the one before. */
const deepAnswer = `${'1. '.repeat(1_000)}the end`;

function chooseAnswer(question: string): string {
  if (question.includes('short')) return 'Short.';
  return question.includes('deep') ? deepAnswer : answer;
}

const writeChunk = (delta: object, finishReason: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  })}\n\n`;

const usage = { prompt_tokens: 1_000, completion_tokens: 200, total_tokens: 1_200 };

async function respond(call: VendorCall): Promise<void> {
  const { body, response } = call;
  calls.push(call);
  const question = JSON.stringify(body.messages.at(-1)?.content);
  if (question.includes('refuse')) {
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ error: { message: 'This is not allowed.', type: 'invalid_request_error' } }),
    );
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(writeChunk({ role: 'assistant', reasoning_content: 'The user wants an answer.' }));
  if (question.includes('slow')) {
    response.write(writeChunk({ content: 'The first words, and then ' }));
    return;
  }
  response.write(writeChunk({ content: chooseAnswer(question) }));
  response.write(writeChunk({}, 'stop'));
  response.end(`data: ${JSON.stringify({ id: 'x', choices: [], usage })}\n\ndata: [DONE]\n\n`);
}

const writeCatalog = (port: number): string => `
upstreams:
  builtin: { kind: builtin }
  lab: { kind: openai, baseUrl: "http://127.0.0.1:${port}/v1", disconnectGraceMs: 200 }
models:
  - id: thinker
    type: vision
    name: Thinker
    context: 32000
    reasoning: true
    reasoning_effort: { default: medium, choices: [low, medium, high] }
    web_search: true
    input_modalities: [text, image]
    output_modalities: [text]
    max_file_count: 2
    pricing: { type: tokens, prompt: 100, completion: 1000 }
    routes: [{ upstream: lab, model: thinker }]
  - id: demo-svg-image
    type: image
    name: Demo picture
    context: 8192
    size: [256x256, 512x512]
    max_image_count: 4
    input_modalities: [text]
    output_modalities: [image]
    pricing: { type: image, cost_per_image: 0.05 }
    routes: [{ upstream: builtin, model: demo-svg-image }]
  - id: demo-image-edit
    type: image
    name: Demo image editor
    context: 8192
    size: [256x256, 512x512]
    max_image_count: 4
    max_file_count: 4
    input_modalities: [text, image]
    output_modalities: [image]
    pricing: { type: image, cost_per_image: 0.05 }
    routes: [{ upstream: builtin, model: demo-image-edit }]
  - id: use-lite-en-512
    type: embedding
    name: Sentence encoder
    context: 8192
    dimensions: { default: 512, adjustable: false }
    special_tokens: 0
    tokenizer: o200k_base
    input_modalities: [text]
    output_modalities: [embedding]
    pricing: { type: tokens, in_cost_per_million: 10 }
    routes: [{ upstream: builtin, model: use-lite-en-512 }]
`;

async function startVendor(): Promise<StackOptions> {
  vendor = createServer((request, response) => {
    readJson(request).then(
      (body) => respond({ body: body as VendorCall['body'], response }),
      () => response.destroy(),
    );
  }).listen(0, '127.0.0.1');
  await once(vendor, 'listening');
  return { catalog: writeCatalog((vendor.address() as AddressInfo).port) };
}

const pages = usePages(test, startVendor);
test.after.always(() => {
  vendor?.closeAllConnections();
  vendor?.close();
});

/** Opens the playground for a new user with a balance. */
async function openPlayground(t: ExecutionContext, path: string, options?: WebPageOptions): Promise<WebPage> {
  const web = await useWebPage(t, pages, options);
  const { client } = await signIn(web, pages.stack);
  const { apiKey } = await pages.stack.createAccount({ balance: '100' });
  t.is((await client.request('POST', '/api-accounts/link', { api_key: apiKey, label: 'Main' })).status, 201);
  await web.open(path);
  return web;
}

const ask = async (page: Page, text: string): Promise<void> => {
  await page.getByRole('textbox', { name: 'Your message' }).fill(text);
  await page.keyboard.press('Enter');
};
const turn = (page: Page, number: number) => page.getByRole('article', { name: `Message ${number}` });

withBrowser('answers come as a stream, are safe to show, and their cost is added up', async (t) => {
  const web = await openPlayground(t, '/playground');
  const { page } = web;
  await page.getByLabel('System prompt').fill('Answer briefly.');
  await page.getByLabel('Reasoning effort').selectOption('low');
  await ask(page, 'What is it?');
  const first = turn(page, 1);
  // 1 000 × 0.0001 ₽ + 200 × 0.001 ₽
  await first.getByText('₽0.30').waitFor();
  t.is(await first.locator('h4').innerText(), 'Answer');
  t.is(await first.locator('pre').innerText(), 'print("hello")');
  t.is(await first.locator('img').count(), 0);
  t.regex(await first.innerText(), /<img src="https:\/\/example\.com\/x\.png" onerror="alert\(1\)">/);
  t.deepEqual(
    await first
      .locator('.playground-markdown a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href'))),
    ['https://example.com/page', 'https://example.com/y.png'],
  );
  await first.getByText('Reasoning', { exact: true }).click();
  await first.getByText('The user wants an answer.').waitFor();
  await ask(page, 'Be short.');
  await turn(page, 2).getByText('₽0.30').waitFor();
  await page.getByText('This conversation: ₽0.60').waitFor();
  t.deepEqual(
    calls.at(-1)!.body.messages.map(({ role, content }) => [role, content]),
    [
      ['system', 'Answer briefly.'],
      ['user', 'What is it?'],
      ['assistant', answer],
      ['user', 'Be short.'],
    ],
  );
  t.like(calls.at(-1)!.body, { reasoning_effort: 'low' });
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'playground-chat');

  // An edit replaces what came after, but not what it cost.
  await first.getByRole('button', { name: 'Edit the message' }).click();
  await page.getByRole('textbox', { name: 'Edit the message' }).fill('Something short.');
  await first.getByRole('button', { name: 'Send' }).click();
  await first.getByText('Short.', { exact: true }).waitFor();
  await page.getByText('This conversation: ₽0.90').waitFor();
  t.is(await turn(page, 2).count(), 0);
  await page.reload();
  await first.getByText('Something short.').waitFor();
  await page.getByText('This conversation: ₽0.90').waitFor();
  t.is(await page.getByLabel('System prompt').inputValue(), 'Answer briefly.');
  // Nothing that scrolls within the conversation makes the page longer.
  for (const count of [2, 3]) {
    await ask(page, 'And again?');
    await turn(page, count).getByText('Details').waitFor();
  }
  t.true(
    await page.locator('.chat-turns').evaluate((turns) => {
      const { scrollHeight, clientHeight } = turns as unknown as Record<
        'scrollHeight' | 'clientHeight',
        number
      >;
      return scrollHeight > clientHeight + 200;
    }),
  );
  await page.locator('.chat-turns').evaluate((turns) => {
    (turns as unknown as { scrollTop: number }).scrollTop = 0;
  });
  t.true(
    await page.evaluate(`
    document.querySelector('.footer').getBoundingClientRect().bottom + scrollY >=
      document.documentElement.scrollHeight - 1
  `),
  );
});

/** Returns what the tab keeps, with the changes that it would write in a moment. */
const readKept = (page: Page): Promise<unknown> =>
  page.evaluate(`(dispatchEvent(new Event('pagehide')), Object.entries(sessionStorage))`);

withBrowser('signing out deletes the conversation, in the middle of an answer, too', async (t) => {
  const web = await openPlayground(t, '/playground');
  const { page } = web;
  await ask(page, 'Be slow.');
  await turn(page, 1).getByText('The first words').waitFor();
  const closed = once(calls.at(-1)!.response, 'close');
  await page.getByRole('button', { name: /^Your profile/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('link', { name: 'Sign in' }).waitFor();
  await closed;
  t.deepEqual(await readKept(page), []);
});

withBrowser('lists within lists are shown as they are, and a new chat can be undone', async (t) => {
  const web = await openPlayground(t, '/playground');
  const { page } = web;
  const plain = turn(page, 1).locator('.chat-answer > .playground-plain');
  await ask(page, 'Be deep.');
  await turn(page, 1).getByText('₽0.30').waitFor();
  t.is(await plain.innerText(), deepAnswer);
  await page.reload();
  await turn(page, 1).getByText('₽0.30').waitFor();
  await page.getByRole('button', { name: 'New chat' }).click();
  await page.getByText('Ask something').waitFor();
  await page.getByRole('button', { name: 'Bring the old one back' }).click();
  await page.getByText('This conversation: ₽0.30').waitFor();
  t.is(await plain.innerText(), deepAnswer);
  // Somebody else who signs in finds nothing of it.
  t.regex(JSON.stringify(await readKept(page)), /Be deep/);
  await web.context.clearCookies();
  const { user } = await signIn(web, pages.stack);
  await web.open('/settings');
  await page.getByRole('button', { name: `Your profile: ${user.email}` }).waitFor();
  t.deepEqual(await readKept(page), []);
});

withBrowser('a stopped answer ends the request, is kept, and is charged for what came', async (t) => {
  const web = await openPlayground(t, '/playground', { size: 'phone' });
  const { page } = web;
  await ask(page, 'Be slow.');
  await turn(page, 1).getByText('The first words').waitFor();
  const { response } = calls.at(-1)!;
  const ended = once(response, 'close');
  await page.getByRole('button', { name: 'Stop' }).click();
  await ended;
  await turn(page, 1).getByText('stopped').waitFor();
  // The gateway counts the tokens that came.
  await turn(page, 1)
    .getByText(/\d+ tokens in/)
    .waitFor();
  await page.getByText(/This conversation: ₽[\d.]*[1-9]/).waitFor();
  t.true(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
  await page.getByRole('button', { name: 'Ask again' }).click();
  await turn(page, 1).getByText('The first words').waitFor();
  // A reload ends it, too.
  const closed = once(calls.at(-1)!.response, 'close');
  await page.reload();
  await turn(page, 1).getByText('stopped').waitFor();
  await closed;
});

withBrowser('a picture is sent, and code sends the same; a failure has its request id', async (t) => {
  const web = await openPlayground(t, '/playground?model=thinker', {
    expectedFailures: ['/chat/completions'],
  });
  const { page } = web;
  const png = makeBlackPng(64, 48, 48);
  await page
    .locator('input[type=file]')
    .setInputFiles({ name: 'black.png', mimeType: 'image/png', buffer: png });
  await page.getByRole('img', { name: 'black.png' }).waitFor();
  await page.getByRole('textbox', { name: 'Your message' }).fill('Will you refuse this picture?');
  await page.getByRole('button', { name: 'Show as code' }).click();
  const code = await page.getByRole('dialog').locator('pre').innerText();
  t.regex(code, /Authorization: Bearer YOUR_API_KEY/);
  t.regex(code, /"Will you refuse this picture\?"/);
  await page.getByRole('tab', { name: 'Python' }).click();
  await takeScreenshots(web, 'playground-code');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Send' }).click();
  const alert = page.getByRole('alert');
  await alert.getByText('The request failed').waitFor();
  const id = await alert.locator('code').innerText();
  t.deepEqual(calls.at(-1)!.body.messages.at(-1)!.content, [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
    { type: 'text', text: 'Will you refuse this picture?' },
  ]);
  t.regex(id, /^[\da-f-]{36}$/);
  await takeScreenshots(web, 'playground-failure');
});

withBrowser('images are drawn, edited and kept with their links', async (t) => {
  const web = await openPlayground(t, '/playground?mode=images', { language: 'ru' });
  const { page } = web;
  await page.getByLabel('Сколько').selectOption('2');
  await page.getByLabel('Что нарисовать').fill('Маяк в тумане');
  await page.getByRole('button', { name: 'Нарисовать' }).click();
  const images = page.getByRole('img', { name: /Маяк в тумане/ });
  await images.nth(1).waitFor();
  await page.getByText(/За этот сеанс: 0,10/).waitFor();
  const link = page.getByRole('link', { name: 'Скачать' }).first();
  t.regex(String(await link.getAttribute('href')), /^\/files\//);

  await page.getByRole('combobox', { name: 'Модель' }).fill('editor');
  await page.getByRole('option', { name: 'Demo image editor' }).click();
  await page.getByRole('button', { name: 'Взять за основу' }).first().click();
  await page.getByRole('group', { name: 'Исходные картинки' }).getByRole('img').waitFor();
  await page.getByLabel('Что нарисовать').fill('blur it');
  await page.getByRole('button', { name: 'Нарисовать маску' }).click();
  const canvas = (await page.locator('canvas').boundingBox())!;
  await page.mouse.move(canvas.x + 40, canvas.y + 40);
  await page.mouse.down();
  await page.mouse.move(canvas.x + 120, canvas.y + 90, { steps: 4 });
  await page.mouse.up();
  await takeScreenshots(web, 'playground-mask');
  await page.getByRole('button', { name: 'Сохранить' }).click();
  await page.getByText('Изменится только закрашенная часть').waitFor();
  await page.getByRole('button', { name: 'Убрать маску' }).click();
  await page.locator('form').getByRole('button', { name: 'Изменить', exact: true }).click();
  const edited = page.getByRole('img', { name: /blur it/ });
  await edited.first().waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'playground-images');
  await page.reload();
  await images.nth(1).waitFor();
  await edited.first().waitFor();
});

withBrowser('texts are compared by their vectors', async (t) => {
  const web = await openPlayground(t, '/playground?mode=embeddings');
  const { page } = web;
  await page.getByRole('textbox', { name: 'Text 1' }).fill('How do I reset my password?');
  await page.getByRole('textbox', { name: 'Text 2' }).fill('I forgot my password and need a new one.');
  await page.getByRole('button', { name: 'Add a text' }).click();
  await page.getByRole('textbox', { name: 'Text 3' }).fill('The lighthouse stands in the fog.');
  await page.getByRole('button', { name: 'Embed and compare' }).click();
  const rows = page.getByRole('table').locator('tbody tr');
  await rows.nth(2).waitFor();
  const similarities = (await rows.nth(0).locator('td').allInnerTexts()).map(Number);
  t.is(similarities[0], 1);
  t.true(similarities[1]! > similarities[2]!);
  await page.getByText('Vectors of 512 numbers').waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'playground-embeddings');
});
