import test from 'ava';
import { checkClock } from '../../../shared/doctor/check-clock.ts';
import { checkMongo } from '../../../shared/doctor/check-mongo.ts';
import { checkSettings, checkVersion } from '../../../shared/doctor/check-settings.ts';
import { runCheck } from '../../../shared/doctor/finding.ts';
import { isOlder } from '../../../shared/doctor/is-older.ts';
import { loadConfig } from '../../../shared/platform/config/config.ts';

test('versions are compared by number, and unreadable ones are not older', (t) => {
  t.true(isOlder('6.2.14', '7.0'));
  t.true(isOlder('20.9.0', '20.19'));
  t.false(isOlder('7.0', '7.0'));
  t.false(isOlder('7.0.15', '7.0'));
  t.false(isOlder('10.1', '7.0'));
  t.false(isOlder('', '7.0'));
  t.is(checkVersion('18.20.0').status, 'problem');
  t.is(checkVersion(process.versions.node).status, 'ok');
});

test('a clock is compared with the time of the question and that of the reply, so that a slow network is no difference', (t) => {
  const at = (serverMs: number) =>
    checkClock('redis', { serverMs, askedAtMs: 100_000, repliedAtMs: 130_000 }).status;
  t.is(at(100_000), 'ok');
  t.is(at(130_000), 'ok');
  t.is(at(130_900), 'ok');
  t.is(at(131_500), 'warning');
  t.is(at(98_500), 'warning');
  t.is(at(141_000), 'problem');
  t.is(at(80_000), 'problem');
  t.is(
    checkClock('redis', { serverMs: 88_000, askedAtMs: 100_000, repliedAtMs: 100_001 }).found,
    "12.0 s behind this machine's: deadlines and sessions end at the wrong time",
  );
});

const variables = {
  NODE_ENV: 'production',
  REDIS_URL: 'redis://127.0.0.1:1',
  MONGODB_URL: 'mongodb://127.0.0.1:2',
  S3_ENDPOINT: 'http://127.0.0.1:3',
  AWS_ACCESS_KEY_ID: 'a',
  AWS_SECRET_ACCESS_KEY: 'b',
  MASTER_KEY: 'c'.repeat(32),
};
const check = (env: Record<string, string>): (string | RegExp)[] => {
  const whole = { ...variables, ...env };
  return checkSettings(loadConfig(whole), whole).map(({ found }) => found.split(/[ :]/)[0]!);
};

test('settings that contradict each other are found', (t) => {
  t.deepEqual(check({}), ['PUBLIC_URL', 'neither']);
  const good = { PUBLIC_URL: 'https://gw.example.com', TRUST_PROXY: 'on', ALERT_EMAIL: 'ops@example.com' };
  t.deepEqual(check(good), ['no']);
  t.deepEqual(check({ ...good, TRUST_PROXY: 'off' }), ['PUBLIC_URL']);
  t.deepEqual(check({ ...good, PUBLIC_URL: 'http://gw.example.com' }), ['PUBLIC_URL']);
  t.deepEqual(check({ ...good, DEMO_ACCOUNT: 'on' }), ['DEMO_ACCOUNT']);
});

const asMongo = (hello: object, version = '8.0.4') => ({
  command: (command: object) => Promise.resolve('hello' in command ? hello : { version }),
  collection: () => ({ findOne: () => Promise.resolve(null) }),
});
const statuses = async (hello: object, version?: string) =>
  (await checkMongo(asMongo(hello, version) as never)).map(({ status }) => status);

test('a MongoDB that is too old, alone, or has an arbiter is found', async (t) => {
  const set = { setName: 'rs0', hosts: ['a:1', 'b:1'], localTime: new Date() };
  t.deepEqual(await statuses(set), ['ok', 'ok', 'ok']);
  t.deepEqual(await statuses({ localTime: new Date() }), ['ok', 'problem', 'ok']);
  t.deepEqual(await statuses({ ...set, arbiters: ['c:1'] }), ['ok', 'warning', 'ok']);
  t.deepEqual(await statuses(set, '5.0.30'), ['problem', 'ok', 'ok']);
});

test('a check that fails is a problem that says why', async (t) => {
  const cause = new Error('connect ECONNREFUSED 127.0.0.1:1');
  t.deepEqual(await runCheck('mongodb', 'Start it.', () => Promise.reject(new AggregateError([cause]))), [
    {
      check: 'mongodb',
      status: 'problem',
      found: 'connect ECONNREFUSED 127.0.0.1:1',
      advice: 'Start it.',
    },
  ]);
});
