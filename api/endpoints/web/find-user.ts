import type { WebUser } from '../../../shared/web/web-models.ts';
import { sessionOf, unauthenticated } from '../../middleware/authenticate-session.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import type { Services } from '../../services.ts';

/** The user of the session. @throws AppError `unauthenticated` where there is none any more */
export async function findUser({ web }: Services, context: ApiContext): Promise<WebUser> {
  const user = await web.users.findById(sessionOf(context).userId);
  if (user === null) throw unauthenticated('The user of this session does not exist any more.');
  return user;
}
