import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';

/** Takes all files that the process may have, and has one read. */
const program = `
  import { closeSync, openSync } from 'node:fs';
  import { DocumentReader } from '${new URL('../../../api/files/document-reader.js', import.meta.url).href}';
  const documents = new DocumentReader();
  const files = [];
  try { for (;;) files.push(openSync('/dev/null')); } catch {}
  const read = () => documents.read('a', {}, new AbortController().signal).catch((error) => error.code);
  const told = [await read(), await read()];
  // Writing what was found takes files as well.
  files.forEach(closeSync);
  await documents.close();
  console.log(JSON.stringify(told));
`;

const withLimit = process.platform === 'win32' ? test.skip : test;

withLimit(
  'where no file is left to start a process with, requests with documents are 503 and nothing ends',
  async (t) => {
    const script = `ulimit -n 64; exec "$0" --input-type=module -e "$1"`;
    const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, program]);
    t.deepEqual(JSON.parse(stdout), ['service_unavailable', 'service_unavailable']);
  },
);
