import test from 'ava';
import {
  atNode,
  findRedisUrlProblem,
  readAccess,
  readNode,
  splitRedisUrls,
} from '../../../../shared/platform/redis/redis-urls.ts';

test('the nodes of a list are found even if a password contains a comma', (t) => {
  t.deepEqual(splitRedisUrls('redis://:a,b@one:1, rediss://:a,redis@two:2'), [
    'redis://:a,b@one:1',
    'rediss://:a,redis@two:2',
  ]);
});

test('the URL of another node has the same user, password and protocol', (t) => {
  const url = 'rediss://us%40er:p%2Fw@one.example';
  t.deepEqual(readAccess(url), { username: 'us@er', password: 'p/w', tls: {} });
  t.deepEqual(readNode(url), { host: 'one.example', port: 6379 });
  t.is(atNode(url, { host: 'two.example', port: 7001 }), 'rediss://us%40er:p%2Fw@two.example:7001');
  t.is(atNode('redis://one:1', { host: '::1', port: 2 }), 'redis://[::1]:2');
  t.deepEqual(readNode('redis://[::1]:2'), { host: '::1', port: 2 });
  t.is(atNode('redis://:p@one:1', { host: 'two', port: 2 }), 'redis://:p@two:2');
});

test('an invalid URL is reported without its password', (t) => {
  const fine = [
    'redis://one',
    'rediss://u:p@one:1/3',
    'redis://:p@one:1,redis://:p@two:2',
    'redis://one/0,redis://two',
  ];
  for (const url of fine) t.is(findRedisUrlProblem(url), null, url);
  const faults = {
    'http://one': /^must be an address such as redis:/,
    'redis://:secret@one,two': /Percent-encode .*$/,
    'redis://one?password=secret': /^must have the user and the password before the host/,
    'redis://u:secret%zz@one': /Percent-encode .*$/,
    'redis://:secret@one,redis://:other@two': /^must have the same protocol, user and password/,
    'redis://:secret@one,rediss://:secret@two': /^must have the same protocol/,
    'redis://one/1,redis://two/1': /^must not specify a database/,
  };
  for (const [url, reason] of Object.entries(faults)) {
    t.regex(findRedisUrlProblem(url) ?? '', reason, url);
    t.notRegex(findRedisUrlProblem(url) ?? '', /secret|other/, url);
  }
});
