import test, { type ExecutionContext } from 'ava';
import { readCode, type ReceivedMail } from '../../support/mailbox.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { createWebUser, WebClient, webStoresOf, type WebClientOptions } from '../../support/web-client.ts';

/** Malicious requests to the account area, served over https behind a proxy. */

let stack: TestStack;

test.before(async () => {
  const env = { WEB_CAPTCHA: 'off', TRUST_PROXY: 'on', PUBLIC_URL: 'https://gateway.example' };
  stack = await startStack({ mail: true, env });
});
test.after.always(() => stack?.close());

let networks = 0;

/** Each call comes from a different network, so that no network limit interferes. */
const fromNewNetwork = (): Record<string, string> => {
  networks += 1;
  return { 'x-forwarded-for': `10.1.${networks >> 8}.${networks & 255}` };
};

const requestCode = (email: string, client = new WebClient(stack.url)): Promise<Response> =>
  client.request('POST', '/auth/request-code', { email, purpose: 'signup' }, fromNewNetwork());

const verifyCode = (challengeId: string, code: string): Promise<Response> =>
  new WebClient(stack.url).request(
    'POST',
    '/auth/verify-code',
    { challenge_id: challengeId, code },
    fromNewNetwork(),
  );

async function readErrorCode(response: Response): Promise<string> {
  return ((await response.json()) as { error: { code: string } }).error.code;
}

async function requestMailedCode(email: string): Promise<{ challengeId: string; code: string }> {
  const { challenge_id: challengeId } = (await (await requestCode(email)).json()) as { challenge_id: string };
  return { challengeId, code: readCode(await stack.mailbox!.waitForMail(email)) };
}

const wrongCodes = (right: string, count: number): string[] =>
  Array.from({ length: count + 1 }, (_, i) => String(i).padStart(6, '0'))
    .filter((code) => code !== right)
    .slice(0, count);

test.serial(
  'an email that contains several addresses or mail syntax is rejected, and nothing is mailed',
  async (t) => {
    const victim = 'injected@example.com';
    const hostile = [
      `a@example.com\r\nBcc: ${victim}`,
      `a@example.com\nBcc: ${victim}`,
      `a@example.com\0${victim}`,
      `a@example.com\u2028Bcc: ${victim}`,
      `a@example.com\u0085${victim}`,
      `a@example.com\t${victim}`,
      `a@example.com,${victim}`,
      `a@example.com;${victim}`,
      `a@example.com ${victim}`,
      `<${victim}>`,
      `"A" <${victim}>`,
      `"a@example.com"@example.com`,
      `a@example.com%0d%0aBcc:${victim}`,
      `a@example.com@${victim}`,
      `(${victim})a@example.com`,
      `a@[127.0.0.1]`,
      `a@127.0.0.1`,
      `a@example.com\\r\\n${victim}`,
      `=?utf-8?q?a=0d=0aBcc=3a?=@example.com`.replace('=?', '\u202e'),
      `-oQ/tmp a@example.com`,
    ];
    for (const email of hostile) {
      const response = await requestCode(email);
      t.is(response.status, 422, email);
      const { detail } = (await response.json()) as { detail: { loc: unknown }[] };
      t.deepEqual(detail[0]?.loc, ['body', 'email']);
    }
    // Mails are sent in order: if one of the others had been queued, it would have arrived before this one.
    const last = 'after-the-injections@example.com';
    await requestCode(last);
    await stack.mailbox!.waitForMail(last);
    t.false(stack.mailbox!.received.some(({ recipient }) => /injected|^a@/.test(recipient)));
  },
);

const markup = '<img src=x onerror=alert(1)>';

/** A mail to a user with this account label, requested from this browser. */
async function mailConfirmation(
  email: string,
  label: string,
  options: WebClientOptions = {},
): Promise<ReceivedMail> {
  const { client, user } = await createWebUser(stack, email, { language: 'en', ...options });
  const { id: accountId } = await stack.createAccount();
  // Stored without validation: the api rejects some of these labels, but mails must not rely on that.
  const link = await webStoresOf(stack).links.create({ userId: user._id, accountId, label });
  const path = `/api-accounts/${link._id}/reveal/request-code`;
  const requested = await client.request('POST', path, { email }, fromNewNetwork());
  if (requested.status !== 201) throw new Error(await requested.text());
  return await stack.mailbox!.waitForMail(email);
}

function checkHarmless(t: ExecutionContext, mail: ReceivedMail, plain: ReceivedMail): void {
  const namesOf = ({ headers }: ReceivedMail): string[] => headers.map(({ key }) => key);
  t.deepEqual(namesOf(mail), namesOf(plain));
  t.deepEqual(
    mail.to?.map(({ address }) => address),
    [mail.recipient],
  );
  t.falsy(mail.bcc);
  t.is(mail.subject, plain.subject);
  t.notRegex(mail.html!, /<(img|script|b|a)\b/i);
  const tags = (html: string): string[] => html.match(/<[^>]*>/g) ?? [];
  t.deepEqual(tags(mail.html!), tags(plain.html!));
  t.regex(readCode(mail), /^\d{6}$/);
}

test.serial(
  'a label with markup or line breaks is plain text in a mail: it adds no tag, header or recipient',
  async (t) => {
    const plain = await mailConfirmation('plain-label@example.com', 'plain');
    const labels = [
      markup,
      '"><script>alert(1)</script>',
      '</title></head><a href="https://evil.example">click</a>',
      'x\r\nBcc: victim@example.com\r\n\r\n<b>mine</b>',
      'x\n\n    000000\n\nx',
      '&lt;b&gt; &#60;b&#62; %3Cb%3E ${code} {{code}}',
      '\u202eelttil\u2066\0',
    ];
    for (const [i, label] of labels.entries()) {
      const mail = await mailConfirmation(`label-${i}@example.com`, label);
      checkHarmless(t, mail, plain);
      t.notRegex(mail.text!, /^Bcc/m);
    }
    const shown = await mailConfirmation('label-shown@example.com', markup);
    t.true(shown.text!.includes(markup));
    t.true(shown.html!.includes('&lt;img src=x onerror=alert(1)&gt;'));
  },
);

test.serial(
  'a user agent with markup, a message or excessive length shows as unknown in mails and in the session list',
  async (t) => {
    const plain = await mailConfirmation('plain-browser@example.com', 'plain', { userAgent: 'curl/8.0 x' });
    const agents = [
      '<img src=x onerror=go>/1.0 x',
      'Your account is blocked. Confirm it at evil.example/1.0 x',
      `</td></tr></table><script>/1.0 x`,
      `${'<b>'.repeat(4_000)}/1.0 x`,
      `Mozilla/5.0 (${'X11; '.repeat(2_400)})`,
      '\t \u00ff\u0080/1.0 x',
    ];
    for (const [i, userAgent] of agents.entries()) {
      const email = `browser-${i}@example.com`;
      const mail = await mailConfirmation(email, 'plain', { userAgent, language: 'en' });
      t.notRegex(mail.html!, /<(img|script|b)\b/i);
      t.notRegex(`${mail.html} ${mail.text}`, /onerror|evil\.example/);
      t.deepEqual(
        mail.headers.map(({ key }) => key),
        plain.headers.map(({ key }) => key),
      );
      const client = new WebClient(stack.url, { userAgent, headers: fromNewNetwork() });
      await client.signIn(email, async () => readCode(await stack.mailbox!.waitForMail(email)));
      const sessions = await client.request('GET', '/auth/sessions');
      const shown = (await sessions.json()) as {
        current: boolean;
        os_name: string;
        browser_name: string;
      }[];
      t.is(shown.find(({ current }) => current)?.browser_name, 'unknown');
      t.notRegex(JSON.stringify(shown), /onerror|evil\.example|script/);
    }
  },
);

test.serial('a code is mailed in Russian or English, even if a browser requests neither', async (t) => {
  const languages = [
    '',
    '*',
    'ru;q=0',
    `${'en,'.repeat(4_000)}en`,
    'en;q=1e9',
    ';;;,,,',
    'ru-\u00ff',
    '../../en',
  ];
  for (const [i, language] of languages.entries()) {
    const email = `language-${i}@example.com`;
    t.is((await requestCode(email, new WebClient(stack.url, { language }))).status, 201, language);
    t.regex((await stack.mailbox!.waitForMail(email)).subject!, /^(Your sign-up code|Код регистрации)/);
  }
});

test.serial(
  'only five of 200 simultaneous attempts at a code are compared; after that even the right one is rejected',
  async (t) => {
    const { challengeId, code } = await requestMailedCode('parallel@example.com');
    const attempts = wrongCodes(code, 200).map((wrong) => verifyCode(challengeId, wrong));
    for (const response of await Promise.all(attempts)) t.is(await readErrorCode(response), 'invalid_code');
    t.is(await readErrorCode(await verifyCode(challengeId, code)), 'invalid_code');

    const other = await requestMailedCode('parallel-other@example.com');
    await Promise.all(wrongCodes(other.code, 4).map((wrong) => verifyCode(other.challengeId, wrong)));
    t.is((await verifyCode(other.challengeId, other.code)).status, 200);
  },
);

test.serial('a code mailed for one challenge does not work for another', async (t) => {
  const [a, b] = [
    await requestMailedCode('challenge-a@example.com'),
    await requestMailedCode('challenge-b@example.com'),
  ];
  t.not(a.code, b.code);
  t.is(await readErrorCode(await verifyCode(b.challengeId, a.code)), 'invalid_code');
  t.is(await readErrorCode(await verifyCode(a.challengeId, b.code)), 'invalid_code');
  const verified = await verifyCode(b.challengeId, b.code);
  t.like(await verified.json(), { user: { email: 'challenge-b@example.com' } });
});

const spellings = {
  'case, spaces and full-width characters': [
    'spelled@example.com',
    'Spelled@Example.COM',
    '  spelled@example.com',
    'spelled@example.com \u00a0\u3000',
    'spelled@ｅｘａｍｐｌｅ.com',
    'spelled@example。com',
    'SPELLED@EXAMPLE．COM',
    'spelled@ex\u00adample.com',
  ],
  'spellings of its domain': [
    'spelled@пример.рф',
    'spelled@ПРИМЕР.РФ',
    'spelled@xn--e1afmkfd.xn--p1ai',
    'Spelled@XN--E1AFMKFD.XN--P1AI',
    'spelled@пример。xn--p1ai',
  ],
};
for (const [what, addresses] of Object.entries(spellings)) {
  test.serial(`the limit of a mailbox applies across ${what}`, async (t) => {
    const statuses: number[] = [];
    for (let i = 0; statuses.filter((status) => status === 201).length < 10 && i < 40; i++)
      statuses.push((await requestCode(addresses[i % addresses.length]!)).status);
    t.deepEqual(
      [...new Set(statuses)].filter((status) => status !== 422),
      [201],
    );
    for (const address of addresses) {
      const response = await requestCode(address);
      if (response.status === 422) continue;
      t.is(response.status, 429, address);
      t.true(Number(response.headers.get('retry-after')) > 0);
    }
  });
}
