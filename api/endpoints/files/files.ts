import { invalidField } from '../../../shared/contract/errors.ts';
import { parseFileId } from '../../../shared/work/files/file-id.ts';
import type { FilePage } from '../../../shared/work/files/file-store.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { holderOf } from '../../http/request/holder.ts';
import { encodePieces, readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import { sendBody } from '../../responses/send-body.ts';
import { findFile, noSuchFile, readFileId } from './find-file.ts';
import { presentFile } from './present-file.ts';

export const listFiles = defineEndpoint(
  operations.listFiles,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const { purpose = null, limit, order, after = null } = context.state.query;
    if (after !== null && parseFileId(after) === null)
      throw invalidField(
        ['query', 'after'],
        'is not the id of a file: send the last_id of the previous page',
      );
    const { accountId } = holderOf(context);
    const reader = readerOf(context);
    const bytes = await readFromRedis(services, reader, 'list', async () => {
      const page = await services.files.list(accountId, { purpose, limit, order, after });
      return await encodePieces(writeList(page), reader);
    });
    await sendBody(context, bytes);
  },
);

/** Yields the JSON of a page, file by file. */
function* writeList({ files, isMore }: FilePage): Generator<string> {
  yield '{"object":"list","data":[';
  for (const [i, file] of files.entries()) yield `${i === 0 ? '' : ','}${JSON.stringify(presentFile(file))}`;
  const end = { first_id: files[0]?.id ?? null, last_id: files.at(-1)?.id ?? null, has_more: isMore };
  yield `],${JSON.stringify(end).slice(1)}`;
}

export const retrieveFile = defineEndpoint(
  operations.retrieveFile,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    context.body = presentFile(await findFile(services, context));
  },
);

export const deleteFile = defineEndpoint(
  operations.deleteFile,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const { accountId } = holderOf(context);
    const id = readFileId(context);
    const isDeleted = await readFromRedis(services, readerOf(context), 'one', () =>
      services.files.delete(accountId, id),
    );
    if (!isDeleted) throw noSuchFile();
    context.body = { id, object: 'file', deleted: true };
  },
);
