import { useSearchParams } from 'wouter-preact';
import { SiteLink } from '../../frame/site-link.tsx';
import { shortId } from '../../admin/links.tsx';

/** Opens a job or a batch over what the page shows. */
export function OpenWork({ kind, id }: { readonly kind: 'job' | 'batch'; readonly id: string }) {
  const [search] = useSearchParams();
  const next = new URLSearchParams(search);
  next.set(kind, id);
  return (
    <SiteLink href={`/admin/work?${next}`} class="id-link">
      <code title={id}>{shortId(id)}</code>
    </SiteLink>
  );
}
