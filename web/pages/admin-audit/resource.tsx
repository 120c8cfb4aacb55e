import { SiteLink } from '../../frame/site-link.tsx';
import { AccountLink, BatchLink, JobLink, ModelLink, shortId } from '../../admin/links.tsx';
import { useMessages } from '../../lib/language.tsx';
import { resourceTypes, splitResource, type ResourceType } from './audit-filter.ts';
import type en from './messages.en.ts';

/** What was changed, with a link to its page. */
export function Resource({ resource }: { readonly resource: string }) {
  const t = useMessages<typeof en>();
  const { type, id } = splitResource(resource);
  const known = resourceTypes.find((name) => name === type);
  return (
    <>
      <span class="admin-audit-note">{known === undefined ? type : t(`resource_${known}`)}</span>
      {known === undefined ? <code>{id}</code> : <ResourceLink type={known} id={id} />}
    </>
  );
}

function ResourceLink({ type, id }: { readonly type: ResourceType; readonly id: string }) {
  switch (type) {
    case 'account':
      return <AccountLink id={id} />;
    case 'model':
      return <ModelLink id={id} />;
    case 'job':
      return <JobLink id={id} />;
    case 'batch':
      return <BatchLink id={id} />;
    case 'user':
      return <SiteLink href={`/admin/users?user=${encodeURIComponent(id)}`}>{shortId(id)}</SiteLink>;
    case 'queue':
      return <SiteLink href="/admin/work">{id}</SiteLink>;
    case 'upstream':
      return <SiteLink href="/admin/models">{id}</SiteLink>;
    case 'code':
      return <SiteLink href="/admin/codes">{shortId(id)}</SiteLink>;
    case 'token':
      return <SiteLink href="/admin/audit?tab=tokens">{id}</SiteLink>;
    case 'ledger':
      return <code title={id}>{shortId(id)}</code>;
  }
}
