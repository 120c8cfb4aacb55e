import { readFile } from 'node:fs/promises';
import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { makePdf, makeSlowPdf, toDataUri } from '../support/make-pdf.ts';
import { postJson } from '../support/post-json.ts';
import { useStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

/** The child processes that read files for an api process. */

const chatWith = (pdf: Buffer): object => ({
  model: 'reader',
  messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: toDataUri(pdf) } }] }],
});

/** Pids of the child processes that read files. */
async function findReaders(pid: number): Promise<string[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  const pids = children.split(' ').filter((child) => child !== '');
  const isReader = await Promise.all(
    pids.map(async (child) => (await readFile(`/proc/${child}/cmdline`, 'utf8')).includes('file-process')),
  );
  return pids.filter((_, i) => isReader[i]);
}

async function isAlive(pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => null);
  return stat !== null && !/\) Z /.test(stat);
}

test('file readers have none of the secrets of their api process, and exit when it is stopped, or killed during a read', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const catalog = `${vendorCatalog(vendor.url)}
  - { id: reader, type: chat, context: 1000000, supported_file_types: [pdf], pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: gpt }] }
`;
  const stack = await useStack(t, { catalog });
  const account = await stack.createAccount();
  const startReading = async () => {
    const api = await startRole(t, 'api', stack.env);
    const url = `${String(api.readyLine['url'])}/v1/chat/completions`;
    return { ...api, send: (pdf: Buffer) => postJson(url, account.apiKey, chatWith(pdf)) };
  };
  const waitForReader = async (pid: number): Promise<string> =>
    await waitFor('a reader', async () => (await findReaders(pid))[0]);

  const idle = await startReading();
  t.is((await idle.send(makePdf(['alpha']))).status, 200);
  const idleReader = await waitForReader(idle.child.pid!);
  t.notRegex(await readFile(`/proc/${idleReader}/environ`, 'latin1'), /MASTER_KEY|REDIS_URL|MONGODB_URL|S3_/);
  t.is(await idle.terminate(), 0);
  t.false(await isAlive(idleReader));

  const busy = await startReading();
  const aborted = t.throwsAsync(busy.send(makeSlowPdf(300, 8)));
  const busyReader = await waitForReader(busy.child.pid!);
  await busy.kill();
  await aborted;
  await waitFor('the reader to exit', async () => !(await isAlive(busyReader)));
});
