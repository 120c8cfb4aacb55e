import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { CommandError, type AdminContext } from './command.ts';

const checkMs = 5_000;

/** Opens the bucket for one command. @throws CommandError if it cannot be reached */
export async function withObjects<T>(
  { config }: Pick<AdminContext, 'config'>,
  use: (objects: ObjectStore) => Promise<T>,
): Promise<T> {
  const objects = new ObjectStore(config.s3);
  try {
    await objects.check(AbortSignal.timeout(checkMs)).catch((error: unknown) => {
      throw new CommandError(`The bucket ${config.s3.bucket} cannot be reached at ${config.s3.endpoint}.`, {
        cause: error,
      });
    });
    return await use(objects);
  } finally {
    objects.close();
  }
}
