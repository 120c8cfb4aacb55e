import test from 'ava';
import { AppError } from '../../../../shared/contract/errors.ts';
import type { ObjectUpload } from '../../../../shared/platform/storage/object-upload.ts';
import type { FileStore } from '../../../../shared/work/files/file-store.ts';
import { FileWriter, type FileWriterDeps } from '../../../../shared/work/files/file-writer.ts';
import { waitFor } from '../../../support/wait-for.ts';

const line = '{"custom_id":"a","body":{"model":"m","input":"one"}}\n';

test('a file whose creation Redis did not confirm is deleted, however often Redis fails meanwhile', async (t) => {
  const created: string[] = [];
  const deleted: string[] = [];
  let failures = 2;
  const files: Pick<FileStore, 'begin' | 'create' | 'delete'> = {
    begin: async () => ({ outcome: 'ok', nowMs: Date.now() }),
    create: async (_accountId, { id }) => {
      created.push(id);
      throw new AppError('service_unavailable');
    },
    delete: async (_accountId, id) => {
      failures -= 1;
      if (failures >= 0) throw new AppError('service_unavailable');
      deleted.push(id);
      return true;
    },
  };
  const upload = { write: () => undefined, complete: async () => ({ byteLength: line.length }) };
  const errors: unknown[] = [];
  const deps = {
    files,
    objects: { openUpload: () => upload as unknown as ObjectUpload },
    config: { files: { maxFiles: 1, maxBytes: 1_000, maxLines: 10, maxFileBytes: 1_000 } },
    log: { error: (error: unknown) => errors.push(error) },
  } as unknown as FileWriterDeps;
  const writer = new FileWriter(deps, 'account', new AbortController().signal);
  await writer.begin(0);
  await writer.write(Buffer.from(line));
  const error = await t.throwsAsync(writer.end('a.jsonl', 3_600), { instanceOf: AppError });
  t.is(error.code, 'service_unavailable');
  await waitFor('the file to be deleted', () => deleted.length > 0);
  t.deepEqual(deleted, created);
  t.deepEqual(errors, []);
});
