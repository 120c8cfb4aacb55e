import { useSearchParams } from 'wouter-preact';
import { SiteLink } from '../../frame/site-link.tsx';

/** Opens a model over what the page shows. */
export function OpenModel({ id }: { readonly id: string }) {
  const [search] = useSearchParams();
  const next = new URLSearchParams(search);
  next.set('model', id);
  return (
    <SiteLink href={`/admin/models?${next}`} class="id-link">
      {id}
    </SiteLink>
  );
}
