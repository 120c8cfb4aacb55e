import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';

/** Opens as many files as the process may, and then tries to read a document. */
const program = `
  import { closeSync, openSync } from 'node:fs';
  import { DocumentReader } from '${new URL('../../../../shared/preparing/documents/document-reader.js', import.meta.url).href}';
  const documents = new DocumentReader();
  const files = [];
  try { for (;;) files.push(openSync('/dev/null')); } catch {}
  const read = () => documents.read('a', {}, new AbortController().signal).catch((error) => error.code);
  const codes = [await read(), await read()];
  // Printing the result needs file descriptors too.
  files.forEach(closeSync);
  await documents.close();
  console.log(JSON.stringify(codes));
`;

const withLimit = process.platform === 'win32' ? test.skip : test;

withLimit(
  'with no file descriptor left to start a process, requests with documents are a 503 and the api keeps running',
  async (t) => {
    const script = `ulimit -n 64; exec "$0" --input-type=module -e "$1"`;
    const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, program]);
    t.deepEqual(JSON.parse(stdout), ['service_unavailable', 'service_unavailable']);
  },
);
