import { Link, useSearchParams } from 'wouter-preact';
import { shortId } from '../../admin/links.tsx';

/** Opens a job or a batch over what the page shows. */
export function OpenWork({ kind, id }: { readonly kind: 'job' | 'batch'; readonly id: string }) {
  const [search] = useSearchParams();
  const next = new URLSearchParams(search);
  next.set(kind, id);
  return (
    <Link href={`/admin/work?${next}`} className="id-link">
      <code title={id}>{shortId(id)}</code>
    </Link>
  );
}
