import { Link, useSearchParams } from 'wouter-preact';
import { shortId } from '../../admin/links.tsx';
import { hrefWith } from '../../lib/address-filters.ts';

/** Opens a job or a batch over what the page shows. */
export function OpenWork({ kind, id }: { readonly kind: 'job' | 'batch'; readonly id: string }) {
  const [filters] = useSearchParams();
  return (
    <Link href={hrefWith('/admin/work', { [kind]: id }, filters)} className="id-link">
      <code title={id}>{shortId(id)}</code>
    </Link>
  );
}
