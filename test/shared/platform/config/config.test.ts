import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { ConfigError } from '../../../../shared/platform/runtime/config-error.ts';
import { loadConfig, pickEndpoints, readLogFormat } from '../../../../shared/platform/config/config.ts';

const complete = {
  REDIS_URL: 'redis://127.0.0.1:1',
  MONGODB_URL: 'mongodb://127.0.0.1:2',
  S3_ENDPOINT: 'http://127.0.0.1:3',
  AWS_ACCESS_KEY_ID: 'a',
  AWS_SECRET_ACCESS_KEY: 'b',
  MASTER_KEY: '0123456789abcdef0123456789abcdef',
};

test('all invalid variables are reported in one message', (t) => {
  const error = t.throws(
    () => loadConfig({ ...complete, PORT: 'x', LOG_LEVEL: 'loud', REDIS_URL: 'http://x' }),
    { instanceOf: ConfigError },
  );
  for (const name of ['PORT', 'LOG_LEVEL', 'REDIS_URL']) t.true(error.message.includes(name), name);
});

test('an invalid origin is reported together with all other errors', (t) => {
  const error = t.throws(
    () => loadConfig({ ...complete, PORT: 'x', CORS_ORIGINS: 'https://app.example,app.example/page' }),
    { instanceOf: ConfigError },
  );
  t.regex(error.message, /^ {2}PORT /m);
  t.regex(error.message, /^ {2}CORS_ORIGINS "app\.example\/page" is not an origin: /m);
});

test('in production all missing services are reported together, and those of a running stack are not used instead', (t) => {
  const error = t.throws(() => loadConfig({ NODE_ENV: 'production' }), { instanceOf: ConfigError });
  for (const name of Object.keys(complete)) t.true(error.message.includes(name), name);
});

test('if no stack is running, the message says what to do', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'config-'));
  t.teardown(() => rm(dir, { recursive: true }));
  t.throws(() => loadConfig({ DATA_DIR: dir }), { instanceOf: ConfigError, message: /npm start/ });
});

test('unset variables come from the running stack, unless its process no longer exists', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'config-'));
  t.teardown(() => rm(dir, { recursive: true }));
  await writeFile(join(dir, 'endpoints.json'), JSON.stringify({ ...complete, pid: process.pid }));
  const config = loadConfig({ DATA_DIR: dir, REDIS_URL: 'redis://127.0.0.1:9' });
  t.is(config.redisUrl, 'redis://127.0.0.1:9');
  t.is(config.mongodbUrl, complete.MONGODB_URL);
  await writeFile(join(dir, 'endpoints.json'), JSON.stringify({ ...complete, pid: 2 ** 30 }));
  t.throws(() => loadConfig({ DATA_DIR: dir }), { instanceOf: ConfigError });
});

test('credentials set for another bucket are not used for the embedded one', (t) => {
  t.like(pickEndpoints(complete, { AWS_ACCESS_KEY_ID: 'mine' }), {
    AWS_ACCESS_KEY_ID: 'a',
    AWS_SECRET_ACCESS_KEY: 'b',
  });
  t.is(pickEndpoints(complete, { S3_ENDPOINT: 'http://s3' })['AWS_ACCESS_KEY_ID'], undefined);
});

test('public URLs lose their trailing slash and their version', (t) => {
  const config = loadConfig({
    ...complete,
    PUBLIC_URL: 'https://api.example.com/v1/',
    BACKUP_URL: 'https://backup.example.com//v1',
  });
  t.is(config.publicUrl, 'https://api.example.com');
  t.is(config.backupUrl, 'https://backup.example.com');
  t.is(config.directUrl, null);
});

test('public URLs are compared after normalizing their scheme, host and port', (t) => {
  for (const url of [
    'HTTPS://Gateway.Example',
    'https://gateway.example:443/',
    ' https:gateway.example/V1/../v1',
  ])
    t.is(loadConfig({ ...complete, PUBLIC_URL: url }).publicUrl, 'https://gateway.example', url);
  t.is(loadConfig({ ...complete, PUBLIC_URL: 'http://[::1]:80/api/v1' }).publicUrl, 'http://[::1]/api');
});

test('by default mail has a sender and no server, and new users get only free requests', (t) => {
  const config = loadConfig(complete);
  t.is(config.smtpUrl, null);
  t.is(config.supportEmail, null);
  t.deepEqual(config.mailFrom, { name: 'Model Gateway', address: 'no-reply@localhost' });
  t.like(config.signup, { isOpen: true, balanceNano: 0n, freeRequests: 10, grantsPerNetwork: 5 });
  t.is(config.signup.noGrantDomains.size, 0);
  t.is(config.captchaMode, 'on');
});

test('alerts are off unless they have a receiver, and workers are expected unless there may be none', (t) => {
  const config = loadConfig(complete);
  t.deepEqual(config.alerts, { webhookUrl: null, email: null });
  t.true(config.expectsWorkers);
  const set = loadConfig({
    ...complete,
    ALERT_WEBHOOK_URL: 'http://10.0.0.1:9093/alerts',
    ALERT_EMAIL: 'ops@example.com',
    MIN_WORKERS: '0',
  });
  t.deepEqual(set.alerts, { webhookUrl: 'http://10.0.0.1:9093/alerts', email: 'ops@example.com' });
  t.false(set.expectsWorkers);
});

test('mail and sign-up settings are read, with roubles exact to the nano-rouble', (t) => {
  const config = loadConfig({
    ...complete,
    SMTP_URL: 'smtps://user:p@mail.example',
    MAIL_FROM: '"Шлюз" <no-reply@gateway.example>',
    SUPPORT_EMAIL: 'support@gateway.example',
    SIGNUP: 'off',
    SIGNUP_BALANCE: '0.000000001',
    SIGNUP_FREE_REQUESTS: '0',
    SIGNUP_GRANTS_PER_NETWORK: '7',
    SIGNUP_NO_GRANT_DOMAINS: 'Rented.test, other.test',
    WEB_CAPTCHA: 'optional',
  });
  t.is(config.smtpUrl, 'smtps://user:p@mail.example');
  t.is(config.supportEmail, 'support@gateway.example');
  t.deepEqual(config.mailFrom, { name: 'Шлюз', address: 'no-reply@gateway.example' });
  t.deepEqual(config.signup, {
    isOpen: false,
    balanceNano: 1n,
    freeRequests: 0,
    grantsPerNetwork: 7,
    noGrantDomains: new Set(['rented.test', 'other.test']),
  });
  t.is(config.captchaMode, 'optional');
});

test('invalid settings of mail and sign-up are reported', (t) => {
  for (const [name, value] of [
    ['MAIL_FROM', 'Gateway <a@b.example>\r\nBcc: eve@example.com'],
    ['MAIL_FROM', 'Gateway'],
    ['MAIL_FROM', 'a@b.example, c@d.example'],
    ['SUPPORT_EMAIL', 'nobody'],
    ['ALERT_EMAIL', 'ops@example.com, others@example.com'],
    ['ALERT_EMAIL', 'ops@example.com\r\nBcc: eve@example.com'],
    ['ALERT_EMAIL', 'ops@exam\r\nple.com'],
    ['ALERT_EMAIL', 'ops@example.com\n'],
    ['MIN_WORKERS', '-1'],
    ['SIGNUP', 'maybe'],
    ['SIGNUP_BALANCE', '-1'],
    ['SIGNUP_BALANCE', '1e3'],
    ['SIGNUP_BALANCE', '9000000.1'],
    ['SIGNUP_FREE_REQUESTS', '1.5'],
    ['SIGNUP_GRANTS_PER_NETWORK', '-1'],
    ['WEB_CAPTCHA', 'never'],
  ] as const) {
    const error = t.throws(() => loadConfig({ ...complete, [name]: value }), { instanceOf: ConfigError });
    t.true(error.message.includes(`  ${name} must be `), `${name}=${value}: ${error.message}`);
  }
  const domains = { SIGNUP_NO_GRANT_DOMAINS: 'good.test, ann@bad.test' };
  const error = t.throws(() => loadConfig({ ...complete, ...domains }), { instanceOf: ConfigError });
  t.true(
    error.message.includes('SIGNUP_NO_GRANT_DOMAINS "ann@bad.test" is not a mail domain'),
    error.message,
  );
});

test('an ADMIN_TOKEN that is short, or that a header cannot carry, is refused with what to do', (t) => {
  const load = (token: string) => loadConfig({ ...complete, ADMIN_TOKEN: token });
  t.is(load('').adminToken, null);
  t.is(load('x'.repeat(32)).adminToken, 'x'.repeat(32));
  const short = t.throws(() => load('x'.repeat(31)), { instanceOf: ConfigError });
  t.regex(
    short.message,
    /ADMIN_TOKEN has 31 characters and needs at least 32: set one that "openssl rand -hex 32"/,
  );
  t.notRegex(short.message, /xxx/);
  for (const token of [`${'x'.repeat(32)} y`, 'ключ'.repeat(8)])
    t.throws(() => load(token), { instanceOf: ConfigError, message: /ADMIN_TOKEN may contain only ASCII/ });
});

test('what brands the pages is checked at the start, each with what to do', (t) => {
  const wrong = {
    BRAND_NAME: ' \u0007',
    BRAND_COLOR: 'teal',
    BRAND_LOGO: '/nothing/logo.svg',
    TERMS_URL: 'example.com',
    PAGES: 'no',
  };
  const { message } = t.throws(() => loadConfig({ ...complete, ...wrong }), { instanceOf: ConfigError });
  t.regex(message, /^ {2}BRAND_NAME must be one line of visible text/m);
  t.regex(message, /^ {2}BRAND_COLOR must be a colour such as #0c6b66/m);
  t.regex(message, /^ {2}BRAND_LOGO names a file that cannot be read: there is no such file/m);
  t.regex(message, /^ {2}TERMS_URL must be an address/m);
  t.regex(message, /^ {2}PAGES /m);
  t.throws(() => loadConfig({ ...complete, BRAND_LOGO: 'package.json' }), {
    message: /BRAND_LOGO must be the path of an image file: \.svg, /,
  });
  t.like(loadConfig({ ...complete, BRAND_COLOR: '#Fa0' }).pages, {
    isServed: true,
    brandColor: '#ffaa00',
    logo: null,
  });
});

test('LOG_FORMAT is json or pretty, and by default depends on the output', (t) => {
  const load = (format: string) => loadConfig({ ...complete, LOG_FORMAT: format });
  t.is(load('').logFormat, null);
  t.is(load('pretty').logFormat, 'pretty');
  t.throws(() => load('xml'), { instanceOf: ConfigError, message: /LOG_FORMAT/ });
  t.deepEqual(
    ['json', 'pretty', 'xml', ''].map((format) => readLogFormat({ LOG_FORMAT: format })),
    ['json', 'pretty', null, null],
  );
});
