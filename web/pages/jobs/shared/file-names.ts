import { useQuery } from '@tanstack/preact-query';
import { api, call } from '../../../lib/api.ts';

/** Names of older files are not looked up. */
const maxFiles = 200;

/** Returns the names of the newest input files by their ids; null until they are known. */
export function useFileNames(): ReadonlyMap<string, string> | null {
  const { data, isError } = useQuery({
    queryKey: ['file-names'],
    queryFn: ({ signal }) =>
      call(api.GET('/v1/files', { params: { query: { purpose: 'batch', limit: maxFiles } }, signal })),
    select: readNames,
  });
  return data ?? (isError ? none : null);
}

const none: ReadonlyMap<string, string> = new Map();

const readNames = ({
  data,
}: {
  readonly data: readonly { readonly id: string; readonly filename: string }[];
}): ReadonlyMap<string, string> => new Map(data.map(({ id, filename }) => [id, filename]));
