import type { Target } from './target.ts';

const blanks = ' '.repeat(15_000);

/** Headers of the maximum length, with content that is slow to parse or match, in calls without a valid key. */
const headers: readonly Readonly<Record<string, string>>[] = [
  { authorization: `Bearer${blanks}x y` },
  { authorization: `Bearer${blanks}` },
  { 'x-forwarded-for': `${'1.'.repeat(7_000)}1` },
  { 'x-forwarded-for': `[${':'.repeat(15_000)}` },
  { 'accept-encoding': 'x;q=0.5,'.repeat(1_900) },
];

/** @returns the statuses received */
export async function sendLongHeaders({
  url,
  rounds = 100,
}: Pick<Target, 'url'> & { readonly rounds?: number }): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>();
  for (let round = 0; round < rounds; round += 1) {
    for (const one of headers) {
      const path = 'authorization' in one ? '/v1/users/profile' : '/v1/models';
      const response = await fetch(`${url}${path}`, { headers: one });
      await response.arrayBuffer();
      statuses.add(response.status);
    }
  }
  return statuses;
}
