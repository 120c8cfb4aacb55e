import { resourceTypes, type ResourceType } from '../../../shared/admin/admin-action.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { AccountLink, BatchLink, JobLink, ModelLink, shortId } from '../../admin/links.tsx';
import { useMessages } from '../../lib/language.tsx';
import { splitResource } from './audit-filter.ts';
import type { AuditEvent } from './outcome.tsx';
import type en from './messages.en.ts';

/** What was changed, with a link to its page. */
export function Resource({
  event: { resource, account_name: name },
}: {
  readonly event: Pick<AuditEvent, 'resource' | 'account_name'>;
}) {
  const t = useMessages<typeof en>();
  const { type, id } = splitResource(resource);
  const known = resourceTypes.find((name) => name === type);
  return (
    <>
      <span class="admin-audit-note">{known === undefined ? type : t(`resource_${known}`)}</span>
      {known === undefined ? <code>{id}</code> : <ResourceLink type={known} id={id} name={name} />}
    </>
  );
}

function ResourceLink({
  type,
  id,
  name,
}: {
  readonly type: ResourceType;
  readonly id: string;
  /** Of an account. */
  readonly name: string | null;
}) {
  switch (type) {
    case 'account':
      return <AccountLink id={id} name={name} />;
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
      return <UpstreamLink id={id} />;
    case 'code':
      return <CodeLink id={id} />;
    case 'token':
      return <SiteLink href="/admin/audit?tab=tokens">{id}</SiteLink>;
    case 'ledger':
      return <code title={id}>{shortId(id)}</code>;
  }
}

/** An upstream, or its routes of a model, whose id comes after its name. */
function UpstreamLink({ id }: { readonly id: string }) {
  const [name = '', model] = id.split(' ');
  const query = new URLSearchParams({ tab: 'upstreams', upstream: name });
  return (
    <>
      <SiteLink href={`/admin/models?${query}`}>{name}</SiteLink>
      {model !== undefined && (
        <>
          {' '}
          <ModelLink id={model} />
        </>
      )}
    </>
  );
}

const batchId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The codes that were made together, or one, which the list has among the others. */
const CodeLink = ({ id }: { readonly id: string }) => (
  <SiteLink href={batchId.test(id) ? `/admin/codes?batch=${id}` : '/admin/codes'}>
    <code title={id}>{shortId(id)}</code>
  </SiteLink>
);
