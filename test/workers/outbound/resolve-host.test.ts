import test from 'ava';
import { createHostResolver } from '../../../workers/outbound/resolve-host.ts';
import { useNameServer } from '../../support/name-server.ts';
import { waitFor } from '../../support/wait-for.ts';

const never = new AbortController().signal;

test('all addresses of both families are returned, IPv4 first', async (t) => {
  const six = '2606:4700:0:0:0:0:0:1';
  const server = await useNameServer(t, {
    'both.test': [six, '192.0.2.1', '10.0.0.1'],
    'four.test': ['192.0.2.1'],
    'six.test': [six],
  });
  const resolveHost = createHostResolver({ servers: [server.address] });
  t.deepEqual(await resolveHost('both.test', never), ['192.0.2.1', '10.0.0.1', '2606:4700::1']);
  t.deepEqual(await resolveHost('four.test', never), ['192.0.2.1']);
  t.deepEqual(await resolveHost('six.test', never), ['2606:4700::1']);
});

test('a name that does not exist, has no addresses or gets no reply resolves to none', async (t) => {
  const server = await useNameServer(t, { 'empty.test': [], 'silent.test': 'silence' });
  const resolveHost = createHostResolver({ servers: [server.address], timeoutMs: 200 });
  t.deepEqual(await resolveHost('missing.test', never), []);
  t.deepEqual(await resolveHost('empty.test', never), []);
  t.deepEqual(await resolveHost('silent.test', never), []);
});

test('names from the hosts file and from search domains are not resolved', async (t) => {
  const server = await useNameServer(t, {});
  const resolveHost = createHostResolver({ servers: [server.address] });
  t.deepEqual(await resolveHost('localhost', never), []);
  t.deepEqual(await resolveHost('redis', never), []);
  t.deepEqual(
    [...new Set(server.queriedNames)].filter((name) => name !== 'localhost'),
    ['redis'],
  );
});

test('aborting a lookup rejects it immediately with the abort reason', async (t) => {
  const server = await useNameServer(t, { 'silent.test': 'silence' });
  const resolveHost = createHostResolver({ servers: [server.address], timeoutMs: 60_000 });
  const abort = new AbortController();
  const resolving = resolveHost('silent.test', abort.signal);
  await waitFor('the query', () => server.queriedNames.length > 0);
  const reason = new Error('gone');
  abort.abort(reason);
  t.is(await t.throwsAsync(resolving), reason);
  t.is(await t.throwsAsync(resolveHost('silent.test', abort.signal)), reason);
});
