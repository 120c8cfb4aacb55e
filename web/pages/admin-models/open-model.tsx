import { Link, useSearchParams } from 'wouter-preact';

/** Opens a model over what the page shows. */
export function OpenModel({ id }: { readonly id: string }) {
  const [search] = useSearchParams();
  const next = new URLSearchParams(search);
  next.set('model', id);
  return (
    <Link href={`/admin/models?${next}`} className="id-link">
      {id}
    </Link>
  );
}
