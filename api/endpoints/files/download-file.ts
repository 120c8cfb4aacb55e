import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { nextWorkTurn } from '../../../shared/fairness/work-turns.ts';
import type { FileRecord } from '../../../shared/work/files/file-record.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { holderOf } from '../../http/request/holder.ts';
import { readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import { noSuchFile, readFileId } from './find-file.ts';
import { isRangeCurrent, type Validators } from './preconditions.ts';
import { SegmentedFile } from './segmented-file.ts';
import { inDownloadSlot, sendFile } from './send-file.ts';

/** Sends the bytes of a file of the account, as `GET /files/{name}` sends an image. */
export const downloadFile = defineEndpoint(
  operations.downloadFile,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    const { accountId } = holderOf(context);
    const id = readFileId(context);
    await inDownloadSlot(services, context, { holder: accountId, whose: 'your account' }, async (reading) => {
      const content = await readFromRedis(services, readerOf(context), 'one', () =>
        services.files.findContent(accountId, id),
      );
      if (content === null) throw noSuchFile();
      const { file } = content;
      const version = findVersion(file);
      if (file.isGrowing) context.set('x-incomplete', 'true');
      await sendFile(context, {
        source: new SegmentedFile(services, content, reading),
        version,
        isRangeCurrent: (headers) => isStartOf(headers, file) || isRangeCurrent(headers, version),
        setHeaders: () => {
          context.set('x-content-type-options', 'nosniff');
          context.attachment(file.name);
          context.type = 'application/octet-stream';
        },
        nextTurn: () => nextWorkTurn(accountId),
      });
    });
  },
);

/** A file only ever grows, so that its length identifies its version. */
function findVersion(file: FileRecord): Validators {
  const { byteLength, isGrowing, createdAtMs, modifiedAtMs } = file;
  return {
    etag: `"${hashId(file)}-${byteLength}"`,
    // Dates have a resolution of a second: a file that changes within that second is never unchanged.
    lastModifiedMs: isGrowing
      ? Date.now()
      : modifiedAtMs === createdAtMs
        ? createdAtMs
        : Math.ceil(modifiedAtMs / 1_000) * 1_000,
  };
}

/** Whether If-Range names an earlier version of the file, which is the start of the current one. */
function isStartOf(headers: IncomingHttpHeaders, file: FileRecord): boolean {
  const [, hash, byteLength] = /^"([\w-]{22})-(\d{1,15})"$/.exec(String(headers['if-range'])) ?? [];
  return hash === hashId(file) && Number(byteLength) <= file.byteLength;
}

/** Tags may be logged, and ids should not be. */
const hashId = ({ id }: FileRecord): string =>
  createHash('sha256').update(id).digest('base64url').slice(0, 22);
