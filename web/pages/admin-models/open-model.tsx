import { Link, useSearchParams } from 'wouter-preact';
import { hrefWith } from '../../lib/address-filters.ts';

/** Opens a model over what the page shows. */
export function OpenModel({ id }: { readonly id: string }) {
  const [filters] = useSearchParams();
  return (
    <Link href={hrefWith('/admin/models', { model: id }, filters)} className="id-link">
      {id}
    </Link>
  );
}
