import test from 'ava';
import { describeUserAgent, deviceTypes, formatDevice } from '../../../shared/account-area/user-agent.ts';

const unknown = { osName: 'unknown', browserName: 'unknown', deviceType: 'unknown' };

test('a device is described by the usual names of its browser and system', (t) => {
  const chrome =
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36';
  t.deepEqual(describeUserAgent(chrome), {
    osName: 'Windows',
    browserName: 'Chrome',
    deviceType: 'desktop',
  });
  const iphone =
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1';
  t.deepEqual(describeUserAgent(iphone), { osName: 'iOS', browserName: 'Safari', deviceType: 'mobile' });
  const ipad =
    'Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.6 Mobile/15E148 Safari/604.1';
  t.is(describeUserAgent(ipad).deviceType, 'tablet');
});

test('parts that the header does not contain are unknown', (t) => {
  for (const header of [undefined, '', '   ']) t.deepEqual(describeUserAgent(header), unknown);
  t.is(describeUserAgent('-').osName, 'unknown');
});

test('a device name omits unknown parts, and is null if nothing is known', (t) => {
  t.is(formatDevice({ browserName: 'Firefox', osName: 'Linux' }), 'Firefox, Linux');
  t.is(formatDevice({ browserName: 'unknown', osName: 'Windows' }), 'Windows');
  t.is(formatDevice(describeUserAgent(undefined)), null);
});

test('a bot is not described as a device', (t) => {
  const bot = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';
  t.deepEqual(describeUserAgent(bot), unknown);
});

test('text of the header never becomes part of a name, because mails contain names and anyone can choose a header', (t) => {
  for (const header of [
    'Your account is blocked. Confirm it at evil.example',
    'Your account is blocked. Confirm it at evil.example/1.0 x',
    'Your account is blocked. Confirm it at evil.example/1.0 (x)',
    'evil.example/1.0 (Windows NT 10.0)',
    'Mozilla/5.0 (evil.example) evil.example/1.0',
  ]) {
    const { osName, browserName } = describeUserAgent(header);
    t.is(browserName, 'unknown', header);
    t.true(['Windows', 'unknown'].includes(osName), header);
  }
});

test('for a header of any content and length, parsing does not fail and the name is short', (t) => {
  const strange = [
    '\u0000',
    '(',
    '/'.repeat(100_000),
    `Mozilla/5.0 (${'Windows '.repeat(20_000)})`,
    'a'.repeat(9_999),
  ];
  for (const header of strange) {
    const { osName, browserName, deviceType } = describeUserAgent(header);
    for (const name of [osName, browserName]) t.true(name.length > 0 && name.length <= 64);
    t.true(deviceTypes.includes(deviceType));
  }
});

test('only the first 512 characters of a header are read', (t) => {
  t.deepEqual(
    describeUserAgent(`${'x'.repeat(512)} Windows NT 10.0 Chrome/138`),
    describeUserAgent('x'.repeat(512)),
  );
});
