import test from 'ava';
import { checkPort, findFreePort } from '../../../scripts/start/loopback.ts';

test('a port that was found is not found again, although nothing listens there yet', async (t) => {
  const ports = [await checkPort('127.0.0.1', 0)];
  while (ports.length < 300) ports.push(await findFreePort());
  t.is(new Set(ports).size, ports.length);
});
