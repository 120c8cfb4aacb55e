import { AppError } from '../../../shared/contract/errors.ts';
import { parseFileId } from '../../../shared/work/files/file-id.ts';
import type { FileRecord } from '../../../shared/work/files/file-record.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { holderOf } from '../../http/request/holder.ts';
import { readerOf, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';

/** Context of a request with a file's id in its path. */
export type FileContext = ApiContext & { readonly state: { readonly path: { readonly file_id: string } } };

/** Throws immediately for malformed ids, so that they are not looked up. */
export function readFileId({ state }: FileContext): string {
  const { file_id: id } = state.path;
  if (parseFileId(id) === null) throw noSuchFile();
  return id;
}

/** @throws AppError `not_found`, `service_unavailable` */
export async function findFile(services: Services, context: FileContext): Promise<FileRecord> {
  const { accountId } = holderOf(context);
  const id = readFileId(context);
  const file = await readFromRedis(services, readerOf(context), 'one', () =>
    services.files.find(accountId, id),
  );
  if (file === null) throw noSuchFile();
  return file;
}

export const noSuchFile = (): AppError =>
  new AppError('not_found', {
    message: 'This account has no such file, or it has expired. GET /v1/files lists the files.',
    messageRu: 'В этом аккаунте нет такого файла, или срок его хранения истёк. Список файлов: GET /v1/files.',
  });
